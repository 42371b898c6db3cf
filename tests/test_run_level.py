"""Whole runs: determinism, every preset, what a run folder holds and what it lets go."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_run_helpers import differing, evidence, lines, tiny

from amago import api
from amago.agent.update import Learner
from amago.envs.catalogue import PRESETS, preset
from amago.rollout.stats import RolloutRecord
from amago.saved import kept
from amago.training.loop import Clock


@pytest.fixture(autouse=True)
def _no_plots_and_oracles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both take longer than all else that these runs do."""
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    monkeypatch.setattr("amago.evaluation.evaluate.oracle_records", lambda *_: None)


def _open_below(folder: Path) -> list[str]:
    """Files of a folder that this process has open."""
    links = []
    for handle in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(handle))
        except OSError:  # the handle that listed the folder
            continue
    return [link for link in links if link.startswith(str(folder))]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    config = tiny("dark-key-to-door", {"transformer.dropout": 0.1})
    assert config.memory == "transformer"
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        api.train(config, seed, tmp_path / name)
    assert differing(tmp_path / "a", tmp_path / "b") == []
    assert {"metrics", "model.safetensors"} <= set(differing(tmp_path / "a", tmp_path / "c"))
    assert "loss/critic" in lines(tmp_path / "a")[-1]


def test_what_is_prepared_ahead_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny("wind", {"run.updates_per_epoch": 4})
    for prefetch in (0, 2):
        monkeypatch.setattr("amago.training.feed.PREFETCH", prefetch)
        api.train(config, 1, tmp_path / str(prefetch))
    assert differing(tmp_path / "0", tmp_path / "2") == []


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_trains_two_small_updates(name: str, tmp_path: Path) -> None:
    keep_both = {"run.save_interval": 1, "run.keep_interval": 1}
    played = max(2, len(preset(name).env.ids))
    few = {"run.eval_episodes": played, "run.final_eval_episodes": played}
    lanes = {"env.num_lanes": played, "env.eval_lanes": played}
    config = tiny(name, {**keep_both, **few, **lanes}, nets=name.endswith("/paper"))
    result = api.train(config, 0, tmp_path / "run", preset=name).result
    last = lines(tmp_path / "run")[-1]
    assert result["updates"] == last["updates"] == 2 and last["learner/skipped"] == 0
    losses = [value for key, value in last.items() if key.startswith("loss/")]
    assert len(losses) >= 3 and all(map(math.isfinite, losses))
    before, after = (
        (tmp_path / "run" / "checkpoints" / epoch / "model.safetensors").read_bytes()
        for epoch in ("000001", "000002")
    )
    assert before != after


@pytest.mark.parametrize("memory", ["gru", "feedforward"])
def test_other_memories_train_and_are_deterministic_too(memory: str, tmp_path: Path) -> None:
    config = tiny("dark-key-to-door", {"memory": memory})
    for name in "ab":
        api.train(config, 0, tmp_path / name)
    assert differing(tmp_path / "a", tmp_path / "b") == []


def test_worker_processes_give_the_metrics_of_one_process(tmp_path: Path) -> None:
    for workers in (0, 2):
        api.train(tiny("wind", {"env.num_workers": workers}), 1, tmp_path / str(workers))
    assert differing(tmp_path / "0", tmp_path / "2") == []


def test_a_run_folder_is_self_contained_and_free_of_pickles(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    api.train(tiny("wind"), 3, folder, preset="wind")
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {"config.json", "metrics.jsonl", "timing.jsonl", "result.json"} <= files
    inside = {Path(name).suffix for name in files if name.startswith("checkpoints/")}
    assert inside == {".json", ".safetensors"}
    header = json.loads((folder / "config.json").read_text())
    assert header["seed"] == 3 and header["preset"] == "wind"
    assert header["config"]["env"]["kwargs"] == {"horizon": 12}
    assert not any("second" in key for row in lines(folder) for key in row)


def test_training_leaves_no_file_of_the_run_open(tmp_path: Path) -> None:
    api.train(tiny("wind"), 0, tmp_path / "run")
    assert _open_below(tmp_path) == []


def test_training_that_fails_leaves_no_file_of_the_run_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the learner broke")

    monkeypatch.setattr(Learner, "learn", fail)
    with pytest.raises(RuntimeError, match="the learner broke"):
        api.train(tiny("wind", {"run.epochs": 5}), 0, tmp_path / "run")
    assert _open_below(tmp_path) == []


def test_only_latest_best_and_periodic_checkpoints_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    returns = iter([1.0, 5.0, 2.0, 3.0, 0.0, 4.0, 1.0])

    def evaluate(_: Any) -> list[RolloutRecord]:
        total = next(returns)
        return [RolloutRecord("wind", 0, total, 1, success=None, blocks=None, world_seed=0)]

    monkeypatch.setattr("amago.training.loop.evaluate_run", evaluate)
    periodic = {"run.save_interval": 1, "run.keep_interval": 3, "run.eval_interval": 1}
    api.train(tiny("wind", {"run.epochs": 7, **periodic}), 0, tmp_path / "run")
    folder = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in folder.iterdir()) == [
        "000002", "000003", "000006", "000007", "best.json", "latest.json",
    ]  # fmt: skip
    for which, epoch in (("best", "000002"), ("latest", "000007"), ("3", "000003")):
        found = kept.find(folder, which)
        assert found is not None and found.name == epoch


def test_what_a_crash_left_of_a_checkpoint_is_ignored_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    config = tiny("wind", {"run.epochs": 4, "run.save_interval": 1})
    api.train(config, 0, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        original, calls = api.loop.collect_epoch, iter([False, False, False, True])
        patch.setattr(api.loop, "collect_epoch", lambda r: stop() if next(calls) else original(r))
        api.train(config, 0, folder)
    half = folder / "checkpoints" / "000004.tmp"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half of it")
    assert str(kept.find(folder / "checkpoints"))[-6:] == "000003"
    api.resume(folder)
    assert not half.exists()
    assert differing(folder, tmp_path / "whole") == []


def test_a_complete_checkpoint_that_latest_does_not_name_yet_is_made_again(tmp_path: Path) -> None:
    config = tiny("wind", {"run.epochs": 3, "run.save_interval": 1, "run.keep_interval": 1})
    api.train(config, 0, tmp_path / "run")
    before = evidence(tmp_path / "run")
    kept.point(tmp_path / "run" / "checkpoints", "latest", 2)
    (tmp_path / "run" / "result.json").unlink()
    # Eviction has not happened: the capacity is not reached, so epoch 2 is still complete.
    api.resume(tmp_path / "run")
    assert evidence(tmp_path / "run") == before


def test_runs_work_without_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tensorboard" else find(name)
    )
    api.train(tiny("wind"), 0, tmp_path / "run")
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_asking_for_wandb_without_having_it_names_the_command_and_closes_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match=r"pip install .*amago.wandb"):
        api.train(tiny("wind", {"run.wandb_project": "mine"}), 0, tmp_path / "run")
    assert _open_below(tmp_path) == []


def test_waiting_for_batches_is_timed_apart_from_using_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("amago.training.loop.time.perf_counter", lambda: now[0])

    def made() -> Iterator[int]:
        for item in range(3):
            now[0] += 2.0
            yield item

    clock = Clock()
    for _ in clock.waits("wait_seconds", made()):
        now[0] += 10.0
    assert clock.laps["wait_seconds"] == 6.0


def test_a_run_of_one_epoch_says_that_it_learns_nothing(tmp_path, caplog) -> None:
    api.train(tiny("wind", {"run.epochs": 1}), 0, tmp_path / "one")
    assert "the first epoch only collects" in caplog.text
    caplog.clear()
    api.train(tiny("wind", {"run.epochs": 2}), 0, tmp_path / "two")
    assert "the first epoch only collects" not in caplog.text
