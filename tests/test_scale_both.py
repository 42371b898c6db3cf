"""Collectors and learners at the same time, and a run that goes on with other numbers of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_collect_helpers import rows, tiny, trajectories
from test_scale_helpers import KillAfter, other_ranks

from amago import api
from amago.replay.reader import TrajectoryReader
from amago.scale.learn_group import LearnerLostError

pytestmark = pytest.mark.usefixtures("quick_collectors", "no_curves")


def test_an_async_run_of_two_learners_loses_nothing_with_any_numbers_afterwards(
    tmp_path: Path, caplog: Any
) -> None:
    folder, view = tmp_path / "run", KillAfter(3)
    config = tiny(scale__collectors=2, scale__learners=2, scale__mode="async", run__epochs=6)
    with pytest.raises(LearnerLostError, match="learner 1 was ended by SIGKILL"):
        api.train(config, 3, folder, view=view)
    assert view.killed == 1 and not list(other_ranks())
    timing = rows(folder / "timing.jsonl")
    assert (timing[-1]["learners"], timing[-1]["collectors"]) == (2, 2)
    seen = trajectories(folder)
    assert len(seen) >= 4 * 4, "the fourth epoch was stored, and not learned from"

    api.resume(folder, set={"scale.mode": "sync", "scale.collectors": 0, "scale.learners": 1})
    assert "trajectories that were stored after the checkpoint are kept" in caplog.text
    after = trajectories(folder)
    assert after[: len(seen)] == seen, "stored once, and not again"
    assert len(after) == len(set(after)) == len(seen) + 3 * 4
    with TrajectoryReader(folder / "replay") as reader:
        stored = sum(reader.lengths[int(number)] for number in reader.ids)
    assert rows(folder / "metrics.jsonl")[-1]["env_steps"] == stored


def test_a_learner_that_ends_before_it_joins_ends_the_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "torch.py").write_text("raise SystemExit(7)")
    with pytest.raises(LearnerLostError, match="learner 1 ended with exit code 7"):
        api.train(tiny(scale__learners=2), 3, tmp_path / "run")
