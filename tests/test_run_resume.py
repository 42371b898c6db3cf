"""A run that was killed and resumed is the run that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from test_replay_helpers import same
from test_run_helpers import (
    KillDuring,
    die,
    differing,
    evidence,
    flags,
    in_another_process,
    lines,
    no_plots,
    tiny,
)
from torch import Tensor, nn

import amago
from amago import api
from amago.agent.agent import Agent
from amago.agent.terms import Term
from amago.agent.transitions import Transitions
from amago.config import Config
from amago.replay.reader import TrajectoryReader
from amago.replay.relabel import Relabeler
from amago.replay.store import TrajectoryStore
from amago.saved import checkpoint, files, kept
from amago.types import Trajectory

# 9 epochs make 27 rollouts: a capacity of 10 evicts from the fourth epoch on. Checkpoints
# come at epochs 5 and 9 and where an evaluation (3, 6, 9) improved.
LONG = {
    "run.epochs": 9,
    "run.eval_interval": 3,
    "run.save_interval": 5,
    "replay.capacity": 10,
    "transformer.dropout": 0.1,
}
SHORTER = {
    "dark-key-to-door": {"grid": 3, "trial_limit": 3, "horizon": 6},
    "wind": {"horizon": 6},
    "maze-runner": {"size": 7, "horizon": 12},
}
PRESETS = tuple(SHORTER)


def _long(name: str) -> Config:
    return tiny(name, {**LONG, "env.kwargs": SHORTER[name]})


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that nothing interrupted."""
    drawn, api.plot_run = api.plot_run, lambda *_, **__: None  # type: ignore[assignment]
    folders = {name: tmp_path_factory.mktemp("whole") / "run" for name in PRESETS}
    for name, folder in folders.items():
        api.train(_long(name), 7, folder, preset=name)
    api.plot_run = drawn
    return folders


def _train_and_die(config: Config, preset: str, folder: Path, epoch: int, phase: str) -> None:
    no_plots()
    api.train(config, 7, folder, preset=preset, view=KillDuring(epoch, phase))


def _resume(folder: Path) -> None:
    no_plots()
    api.resume(folder)


def _resume_and_die(folder: Path, epochs_later: int) -> None:
    no_plots()
    api.resume(folder, view=KillDuring(epochs_later, "learning"))


@contextmanager
def both_replays(a: Path, b: Path) -> Iterator[tuple[TrajectoryReader, TrajectoryReader]]:
    with (
        TrajectoryStore.open_readonly(a / "replay") as ours,
        TrajectoryStore.open_readonly(b / "replay") as theirs,
    ):
        yield ours, theirs


def check_same_rollouts(ours: TrajectoryReader, theirs: TrajectoryReader) -> None:
    assert dict(ours.lengths) == dict(theirs.lengths) and len(ours.lengths) == 10
    assert all(same(ours.read(i), theirs.read(i)) for i in ours.ids.tolist())


@pytest.mark.parametrize(
    ("preset", "epoch", "phase"),
    [("dark-key-to-door", 8, "learning"), ("wind", 8, "learning"), ("wind", 9, "evaluating")],
)
def test_a_run_killed_in_a_later_epoch_goes_on_as_if_nothing_had_happened(
    whole: dict[str, Path], tmp_path: Path, preset: str, epoch: int, phase: str
) -> None:
    folder = tmp_path / "run"
    code = in_another_process(_train_and_die, _long(preset), preset, folder, epoch, phase)
    assert code == -signal.SIGKILL
    saved = kept.find(folder / "checkpoints")
    assert saved is not None and int(saved.name) < len(lines(folder)) == epoch - 1
    api.resume(folder)
    assert differing(folder, whole[preset]) == []
    with both_replays(folder, whole[preset]) as (ours, theirs):
        assert ours.window == theirs.window == (17, 27)
        check_same_rollouts(ours, theirs)


def test_a_killed_run_that_relabels_goes_on_with_the_same_goals_equally_rare(
    whole: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, config = tmp_path / "run", _long("maze-runner")
    assert config.relabel.relabel == "some" and config.relabel.importance_sampling
    code = in_another_process(_train_and_die, config, "maze-runner", folder, 8, "learning")
    assert code == -signal.SIGKILL
    saved = kept.find(folder / "checkpoints")
    assert saved is not None and int(saved.name) < len(lines(folder)) == 7
    asked_anew: list[bool] = []

    def relabel(
        self: Relabeler, trajectory: Trajectory, rng: Any, original: Any = Relabeler.__call__
    ) -> Trajectory:
        after: Trajectory = original(self, trajectory, rng)
        asked_anew.append(not same(after.instruction, trajectory.instruction))
        return after

    monkeypatch.setattr(Relabeler, "__call__", relabel)
    api.resume(folder)
    assert sum(asked_anew) > 0
    assert differing(folder, whole["maze-runner"]) == []
    with both_replays(folder, whole["maze-runner"]) as (ours, theirs):
        assert ours.window == theirs.window and ours.window[0] > 10
        check_same_rollouts(ours, theirs)
        assert same(ours.goal_counts(), theirs.goal_counts())
        assert len(ours.goal_counts().goals) > 1


def test_a_killed_run_goes_on_with_the_curriculum_that_it_had_come_to(tmp_path: Path) -> None:
    """Half of the instructions are of the tech-tree, once something of it was achieved."""
    pytest.importorskip("crafter")
    few = {"env.eval_lanes": 1, "run.eval_episodes": 1, "run.final_eval_episodes": 1}
    rare = {"run.epochs": 3, "run.eval_interval": 3, "run.save_interval": 2}
    world = {"env.kwargs": {"instructions": "tech-tree", "horizon": 60}}
    config = tiny("crafter", {**few, **rare, **world})
    folder, uninterrupted = tmp_path / "run", tmp_path / "whole"
    code = in_another_process(_train_and_die, config, "crafter", folder, 3, "evaluating")
    assert code == -signal.SIGKILL
    saved = kept.find(folder / "checkpoints")
    assert saved is not None and saved.name == "000002"
    assert checkpoint.read_state(saved)["curriculum"] == {"amago/Crafter-v0": 0}  # collect wood
    api.resume(folder)
    api.train(config, 7, uninterrupted, preset="crafter")
    assert differing(folder, uninterrupted) == []
    with both_replays(folder, uninterrupted) as (ours, theirs):
        assert all(same(ours.read(i), theirs.read(i)) for i in ours.ids.tolist())


class RewardModel(Term):
    """A user's own loss term, with a network of its own."""

    name, weight = "reward_model", 0.1

    def build(self, agent: Agent) -> None:
        self.network = nn.Linear(agent.memory.output_dim, 1)

    def loss(self, transitions: Transitions) -> Tensor:
        assert self.network is not None
        predicted: Tensor = self.network(transitions.actor_state)[:, 0]
        return (predicted - transitions.reward) ** 2


def _train_with_own_term_and_die(config: Config, folder: Path) -> None:
    no_plots()
    view = KillDuring(8, "learning")
    api.train(config, 7, folder, preset="wind", terms=[RewardModel()], view=view)


def test_a_killed_run_with_its_own_loss_term_goes_on_as_if_nothing_had_happened(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    config, folder, uninterrupted = _long("wind"), tmp_path / "run", tmp_path / "whole"
    assert in_another_process(_train_with_own_term_and_die, config, folder) == -signal.SIGKILL
    saved = kept.find(folder / "checkpoints")
    assert saved is not None and int(saved.name) < 7
    assert any("reward_model" in name for name in load_file(saved / "model.safetensors"))
    api.resume(folder, terms=[RewardModel()])
    api.train(config, 7, uninterrupted, preset="wind", terms=[RewardModel()])
    assert "loss/reward_model" in lines(folder)[-1]
    assert differing(folder, uninterrupted) == []
    assert differing(folder, whole["wind"])  # the term does change what is learned


def test_a_run_killed_again_and_again_still_ends_the_same(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    folder, config = tmp_path / "run", _long("wind")
    in_another_process(_train_and_die, config, "wind", folder, 4, "learning")
    for later in (1, 4):
        assert in_another_process(_resume_and_die, folder, later) == -signal.SIGKILL
    assert in_another_process(_resume, folder) == 0
    assert differing(folder, whole["wind"]) == []


def test_a_run_killed_before_its_first_checkpoint_starts_from_zero(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    in_another_process(_train_and_die, _long("wind"), "wind", folder, 3, "learning")
    assert kept.find(folder / "checkpoints") is None and len(lines(folder)) == 2
    api.resume(folder)
    assert differing(folder, whole["wind"]) == []


def test_a_run_killed_before_its_final_test_still_gets_it(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    in_another_process(_train_and_die, _long("wind"), "wind", folder, 10, "final test")
    assert len(lines(folder)) == 9 and not (folder / "result.json").exists()
    api.resume(folder)
    assert differing(folder, whole["wind"]) == []


def _die_at_sync(config: Config, folder: Path, number: int) -> None:
    """Dies at the n-th time that the checkpoint of epoch 5 makes something durable."""
    no_plots()
    left = [number]

    def sync(path: Path, original: Any = files.sync_path) -> None:
        if "000005" in str(path) or (folder / "checkpoints" / "000005").exists():
            left[0] -= 1
            if left[0] == 0:
                die()
        original(path)

    checkpoint.sync_path = kept.sync_path = files.sync_path = sync  # type: ignore[assignment]
    api.train(config, 7, folder, preset="wind")


@pytest.mark.parametrize("number", (2, 7))
def test_a_run_killed_while_it_saves_has_a_complete_checkpoint_and_goes_on(
    whole: dict[str, Path], tmp_path: Path, number: int
) -> None:
    folder = tmp_path / "run"
    code = in_another_process(_die_at_sync, _long("wind"), folder, number)
    assert code == -signal.SIGKILL
    latest = kept.find(folder / "checkpoints")
    assert latest is not None and latest.name in ("000003", "000005")
    assert {path.name for path in latest.iterdir()} == {
        "model.safetensors", "optimizer.safetensors", "state.json", "checksums.json",
    }  # fmt: skip
    api.resume(folder)
    assert differing(folder, whole["wind"]) == []
    assert not list((folder / "checkpoints").glob("*.tmp"))


def _die_at_call(config: Config, folder: Path, where: str) -> None:
    no_plots()
    if where == "evict":
        original_evict = TrajectoryStore.evict

        def evict(self: TrajectoryStore, below: int | None = None) -> None:
            if self.window[1] == 15:  # at the checkpoint of epoch 5, which no evaluation made
                die()
            original_evict(self, below)

        TrajectoryStore.evict = evict  # type: ignore[method-assign]
    else:
        original = checkpoint.point

        def point(path: Path, name: str, epoch: int) -> None:
            if name == "best":
                die()
            original(path, name, epoch)

        checkpoint.point = point
    api.train(config, 7, folder, preset="wind")


def test_a_run_killed_between_checkpoint_and_eviction_loses_nothing(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    assert in_another_process(_die_at_call, _long("wind"), folder, "evict") == -signal.SIGKILL
    api.resume(folder)
    assert differing(folder, whole["wind"]) == []


def test_a_run_killed_before_it_named_its_best_checkpoint_names_it_later(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    assert in_another_process(_die_at_call, _long("wind"), folder, "best") == -signal.SIGKILL
    api.resume(folder)
    assert (folder / "checkpoints" / "best.json").exists(), "no best checkpoint at all"
    assert differing(folder, whole["wind"]) == []


def test_the_command_resume_continues_a_process_that_was_killed_from_outside(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    name, folder = "dark-key-to-door", tmp_path / "run"
    amago_command = [sys.executable, "-m", "amago"]
    arguments = ["--seed", "7", "--run-dir", folder, *flags(_long(name), amago.preset(name))]
    quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "OMP_NUM_THREADS": "1"}}
    child = subprocess.Popen([*amago_command, "train", name, *arguments], **quiet)
    deadline = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < deadline:
        saved = kept.find(folder / "checkpoints")
        if saved is not None and len(lines(folder)) > int(saved.name):
            break
        time.sleep(0.002)
    child.kill()
    assert child.wait() == -signal.SIGKILL, "the run ended before it could be killed"
    subprocess.run([*amago_command, "resume", folder], check=True, **quiet)
    assert differing(folder, whole[name]) == []
    assert (folder / "curves.png").exists()


def test_resuming_a_finished_run_changes_nothing(whole: dict[str, Path]) -> None:
    folder = whole["wind"]
    kept = ("config.json", "metrics.jsonl", "timing.jsonl", "result.json")
    before, texts = evidence(folder), [(folder / name).read_bytes() for name in kept]
    result = api.resume(folder).result
    assert evidence(folder) == before
    assert [(folder / name).read_bytes() for name in kept] == texts
    assert result["return_mean"] == before["result"]["return_mean"]


def test_a_resumed_run_may_be_resumed_by_another_process(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    """Nothing of the store stays open in this process."""
    api.resume(whole["wind"])
    assert in_another_process(_resume, whole["wind"]) == 0
