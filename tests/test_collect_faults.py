"""Collectors are killed, hang or raise; the replay has every acknowledged trajectory once."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import pytest
from test_collect_helpers import AtEpoch, contents, endless, rows, tiny, trained, trajectories

from amago import api
from amago.scale.collect_dispatch import Dispatch
from amago.scale.collect_fleet import Event, Lost, Ready
from amago.scale.collect_processes import ProcessFleet
from amago.scale.collect_weights import Weights
from amago.scale.collector import LaneShare

pytestmark = pytest.mark.usefixtures("quick_children", "no_curves")


def kill_one(_: object = None) -> None:
    """kill -9 of the first collector of this process."""
    fleets = [f for f in FLEETS if f._collectors]
    os.kill(next(iter(fleets[-1]._collectors.values())).process.pid, signal.SIGKILL)


FLEETS: list[ProcessFleet] = []


@pytest.fixture(autouse=True)
def _remember_fleets(monkeypatch: pytest.MonkeyPatch) -> None:
    original: Callable[..., None] = ProcessFleet.__init__

    def remember(self: ProcessFleet, *arguments: object) -> None:
        original(self, *arguments)
        FLEETS.append(self)

    monkeypatch.setattr(ProcessFleet, "__init__", remember)


def test_killed_collectors_are_replaced_and_the_run_is_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    config = tiny(scale__collectors=2)
    calm = contents(trained(tmp_path / "calm", config))
    api.train(config, 3, tmp_path / "rough", view=AtEpoch({1: kill_one, 2: kill_one}))
    assert contents(tmp_path / "rough") == calm
    assert rows(tmp_path / "rough" / "timing.jsonl")[-1]["collectors_lost"] == 2


def test_an_async_run_with_killed_collectors_stores_each_share_once(tmp_path: Path) -> None:
    config = tiny(scale__collectors=2, scale__mode="async", run__epochs=5)
    view = AtEpoch({1: kill_one, 3: kill_one})
    api.train(config, 3, tmp_path / "run", view=view)
    stored = trajectories(tmp_path / "run")
    assert len(stored) == len(set(stored)) == 5 * 4
    row = rows(tmp_path / "run" / "metrics.jsonl")[-1]
    assert row["replay/trajectories"] == len(stored)


def test_after_a_loss_as_many_collectors_play_as_before(tmp_path: Path) -> None:
    played: list[tuple[int, int]] = []

    class KillsOnce(api.Silent):
        def epoch(self, metrics: dict[str, object], timing: dict[str, int]) -> None:
            played.append((timing["collectors_lost"], timing["collectors"]))
            if metrics["epoch"] == 1:
                kill_one()
            if played[-1] == (1, 2):
                raise KeyboardInterrupt

    config = tiny(scale__collectors=2, run__epochs=2000)
    with pytest.raises(KeyboardInterrupt):
        api.train(config, 3, tmp_path / "run", view=KillsOnce())
    assert played[0][0] == 0 and played[-1] == (1, 2)


def test_an_exception_in_an_environment_ends_the_run_with_its_traceback(tmp_path: Path) -> None:
    config = tiny("gym", scale__collectors=1, rollout__steps_per_epoch=10)
    with pytest.raises(RuntimeError, match=r"(?s)a collector raised .*the third step is broken"):
        api.train(config, 3, tmp_path / "run", env=Broken)


class Broken(gym.Env[object, object]):
    observation_space = gym.spaces.Box(0, 1, (1,))
    action_space = gym.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[object, dict]:
        return self.observation_space.low, {}

    def step(self, action: object) -> tuple[object, float, bool, bool, dict]:
        self.steps += 1
        if self.steps == 3:
            raise RuntimeError("the third step is broken")
        return self.observation_space.low, 0.0, False, False, {}


def test_a_killed_learner_leaves_no_collector_behind_and_its_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    learner = subprocess.Popen(endless(folder), stdout=subprocess.DEVNULL)
    try:
        _wait(lambda: (folder / "checkpoints" / "latest.json").exists())
        children = _descendants(learner.pid)
        assert len(children) >= 2
    finally:
        learner.kill()
        learner.wait()
    _wait(lambda: not any(map(_lives, children)))
    before = trajectories(folder)
    api.resume(folder, epochs=max(20, len(before) // 4 + 3))
    after = trajectories(folder)
    assert after[: len(before)] == before and len(set(after)) == len(after)


def test_a_collector_that_is_silent_for_too_long_is_replaced() -> None:
    fleet = _Silent()
    dispatch = Dispatch(fleet, 1, timeout=0.01)
    dispatch.put(LaneShare(range(2), 0, None, {}, 0.0))
    dispatch.step(0.0)
    dispatch.step(0.0)
    time.sleep(0.02)
    dispatch.step(0.0)
    assert fleet.removed == [0] and fleet.added == 2 and dispatch.replaced == 1
    dispatch.step(0.0)
    dispatch.step(0.0)
    assert [collector for collector, _ in fleet.sent] == [0, 1]
    assert fleet.sent[0][1] is fleet.sent[1][1], "the same share, once more"


def test_collectors_that_die_again_and_again_end_the_run() -> None:
    fleet = _Silent(dies=True)
    dispatch = Dispatch(fleet, 1, timeout=60.0)
    with pytest.raises(RuntimeError, match=r"lost again and again \(exit code -9\)"):
        for _ in range(20):
            dispatch.step(0.0)


class _Silent:
    """A fleet whose collectors begin and never answer, or die before they begin."""

    def __init__(self, dies: bool = False) -> None:
        self.dies, self.added, self.removed = dies, 0, list[int]()
        self.sent: list[tuple[int, LaneShare]] = []
        self._events: list[Event] = []

    def add(self) -> int:
        number, self.added = self.added, self.added + 1
        self._events.append(Lost(number, "exit code -9") if self.dies else Ready(number))
        return number

    def publish(self, weights: Weights) -> None: ...

    def send(self, collector: int, share: LaneShare) -> None:
        self.sent.append((collector, share))

    def poll(self, timeout: float) -> list[Event]:
        events, self._events = self._events, []
        return events

    def remove(self, collector: int) -> None:
        self.removed.append(collector)

    def close(self) -> None: ...


def _wait(condition: Callable[[], bool], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def _descendants(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *_descendants(child)]
    return found


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
