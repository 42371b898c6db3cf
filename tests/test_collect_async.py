"""Asynchronous collecting: the ratio is held, weights are never too old, nothing is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from test_collect_helpers import rows, tiny, trained, trajectories

from amago import api
from amago.scale.collect_async import AsyncCollection
from amago.scale.collect_dispatch import Dispatch
from amago.scale.collect_ledger import Ledger
from amago.scale.collect_weights import Weights
from amago.training.cores import prepare_learner

pytestmark = pytest.mark.usefixtures("quick_children", "no_curves")


def ledger(**changes: int) -> Ledger:
    return Ledger(num_lanes=4, num_epochs=5, max_lag=2, updates_per_epoch=10, **changes)


def test_collectors_wait_when_they_are_an_epoch_ahead_of_the_learner() -> None:
    assert ledger(epoch=2, issued=10).may_issue(range(2))
    assert not ledger(epoch=2, issued=11).may_issue(range(2))


def test_nothing_is_collected_beyond_the_last_epoch() -> None:
    assert not ledger(epoch=5, issued=20).may_issue(range(1))


def test_the_learner_waits_for_the_experience_of_its_epoch() -> None:
    assert not ledger(epoch=2, collected=7).may_learn(10, None)
    assert ledger(epoch=2, collected=8).may_learn(10, None)


def test_the_learner_waits_for_a_collector_whose_weights_would_become_too_old() -> None:
    held = ledger(epoch=4, collected=16)
    assert held.may_learn(30, oldest=20)
    assert not held.may_learn(30, oldest=19), "after 10 more updates it would be 21 behind"


def test_a_learner_leaves_cores_to_collectors_that_play_beside_it_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    before = torch.get_num_threads()
    try:
        for changes, threads in (
            ({"scale__mode": "async"}, 5),
            ({"scale__mode": "async", "scale__address": "local"}, 5),
            ({"scale__mode": "async", "scale__address": "auto"}, 6),
            ({"scale__mode": "async", "run__threads": 7}, 7),
            ({"scale__mode": "async", "env__num_lanes": 9, "scale__collectors": 9}, 1),
            ({"scale__mode": "sync"}, 6),
        ):
            torch.set_num_threads(6)  # what torch or OMP_NUM_THREADS has chosen
            prepare_learner(tiny(**{"scale__collectors": 3, "run__threads": 0, **changes}))
            assert torch.get_num_threads() == threads, changes
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("published", "playing", "may"), [(10, None, True), (9, None, False), (20, 9, False)]
)
def test_the_learner_begins_before_new_weights_are_given_out_if_the_last_ones_may_be_played(
    published: int, playing: int | None, may: bool
) -> None:
    collection = AsyncCollection.__new__(AsyncCollection)
    collection._ledger = ledger(epoch=3, collected=12)
    collection._version = published
    collection._dispatch = cast(Dispatch, SimpleNamespace(oldest=playing))
    assert collection._may_learn(Weights(20, {})) is may


def test_an_async_run_keeps_the_ratio_and_bounds_the_lag(tmp_path: Path) -> None:
    config = tiny(scale__collectors=2, scale__mode="async", scale__max_lag=1, run__epochs=8)
    folder = trained(tmp_path / "run", config)
    stored = trajectories(folder)
    assert len(stored) == len(set(stored)) == 8 * 4, "one rollout per lane and epoch"
    metrics, timing = rows(folder / "metrics.jsonl"), rows(folder / "timing.jsonl")
    planned = 4 * config.env.kwargs["corridor"]
    for row in metrics:
        assert row["env_steps"] >= row["epoch"] * planned, "learning never runs ahead"
        ahead = row["replay/trajectories"] / 4 - row["epoch"]
        assert 0 <= ahead <= 1, "collecting is at most one epoch ahead"
    assert metrics[-1]["updates"] == 7 * 2, "the first epoch only collects: the ratio is exact"
    assert max(row.get("lag_max", 0) for row in timing) <= 1 * 2, "max_lag epochs of 2 updates"
    assert timing[-1]["collectors"] == 2


def test_a_stopped_async_run_goes_on_with_all_that_was_stored(tmp_path: Path) -> None:
    config = tiny(scale__collectors=1, scale__mode="async", run__epochs=6)
    folder = tmp_path / "run"

    class StopsInEpochThree(api.Silent):
        def phase(self, name: str, fraction: float = 0.0) -> None:
            if name == "evaluating" and (folder / "checkpoints" / "000003").exists():
                time.sleep(1.0)  # the collector stores what back-pressure allows
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.train(config, 3, folder, view=StopsInEpochThree())
    seen = trajectories(folder)
    assert len(seen) > 3 * 4, "more than the checkpoint of epoch 3 knows"
    api.resume(folder)
    after = trajectories(folder)
    assert after[: len(seen)] == seen, "stored once, and not again"
    assert len(after) == len(set(after)) == 6 * 4
