"""An environment's fault names its place, repeats on demand, and never passes as a value."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from test_run_helpers import command, lines, tiny

from amago import api
from amago.envs.faults import EnvFaultError
from amago.envs.gym_vector import GymVector
from amago.envs.in_process import InProcessVector
from amago.envs.lane import _MOST_RESTARTS
from amago.envs.lanes import world_seed
from amago.envs.native import NativeVector
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.workers import WorkerVector
from amago.training.view import _PlainView

pytestmark = pytest.mark.usefixtures("quick_children")


class Faulty(gym.Env[Any, Any]):
    """Eight steps long; at step `at` of worlds whose seed is divisible by `every`, its fault."""

    def __init__(self, fault: str = "", at: int = 3, every: int = 1) -> None:
        self.fault, self.at, self.every = fault, at, every
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.time, self.bad = 0, (seed or 0) % self.every == 0
        if self.bad and self.at == 0:
            raise OSError("the simulator does not start")
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, ...]:
        self.time += 1
        obs: Any = np.full(2, self.time / 10, np.float32)
        result = [obs, 1.0, False, self.time == 8, {}]
        if self.bad and self.time == self.at:
            result = self._go_wrong(result)
        return tuple(result)

    def _go_wrong(self, result: list[Any]) -> list[Any]:
        if self.fault == "raise":
            raise KeyError("no such joint")
        if self.fault == "exit":
            sys.exit(3)
        if self.fault == "hang":
            time.sleep(60)
        if self.fault in ("", "hang"):
            return result
        changes: dict[str, tuple[int, Any]] = {
            "no reward": (1, None), "text as reward": (1, "1.0"), "many rewards": (1, [1.0, 2.0]),
            "text as flag": (2, "False"), "no flag": (3, None), "text as info": (4, "fine"),
            "shape": (0, np.zeros(3, np.float32)), "text as obs": (0, "ab"),
            "objects": (0, np.array([None, None])), "nan obs": (0, np.full(2, np.nan, np.float32)),
            "nan reward": (1, float("nan")),
        }  # fmt: skip
        if self.fault == "four values":
            return result[:4]
        place, value = changes[self.fault]
        result[place] = value
        return result


if "Faulty-v0" not in gym.registry:
    gym.register("Faulty-v0", Faulty, order_enforce=False)

FAULTS = ("raise", "exit", "no reward", "text as reward", "many rewards", "text as flag",
          "no flag", "text as info", "shape", "text as obs", "objects", "four values")  # fmt: skip


def play(vector: Any, steps: int = 8) -> None:
    vector.reset()
    for _ in range(steps):
        vector.step(np.ones(vector.num_lanes, np.int64))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_names_environment_lane_world_seed_and_step(fault: str) -> None:
    vector = InProcessVector(partial(Faulty, fault), 2, seed=5, first_lane=7)
    with pytest.raises(EnvFaultError) as found:
        play(vector)
    seed = world_seed(5, 7, 0)
    assert f"Faulty, lane 7, world seed {seed}, step 3" in str(found.value)


def test_a_fault_keeps_its_traceback_and_the_command_it_names_repeats_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = EnvSettings(id="Faulty-v0", kwargs={"fault": "raise", "at": 4})
    with pytest.raises(EnvFaultError) as found:
        play(make_vector(settings, seed=1, num_lanes=2))
    text = str(found.value)
    assert "KeyError: 'no such joint'" in text and 'raise KeyError("no such joint")' in text
    advice = re.search(r"`amago (check-env \S+)`", text)
    assert advice is not None
    code, out, _ = command(capsys, *advice[1].split())
    assert code == 1 and "KeyError: 'no such joint'" in out
    path = Path(advice[1].split()[1])
    path.write_text(path.read_text().replace('"fault": "raise"', '"fault": "nan obs"'))
    code, out, _ = command(capsys, "check-env", path)
    assert code == 0 and "nothing failed" in out
    path.write_text("{}")
    code, _, err = command(capsys, "check-env", path)
    assert code == 2 and "not the file of an environment's error" in err
    path.unlink()


@pytest.mark.parametrize("fault", ["nan obs", "nan reward"])
def test_the_first_value_that_is_not_finite_is_told_at_once_with_its_place(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    play(InProcessVector(partial(Faulty, fault), 2, seed=5))
    assert caplog.text.count("NaN or infinity") == 1
    assert f"lane 0, world seed {world_seed(5, 0, 0)}, step 3" in caplog.text


@pytest.mark.parametrize("fault", ["raise", "exit", "text as flag"])
def test_a_lane_that_may_be_replaced_goes_on_in_another_world(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = EnvSettings(
        id="Faulty-v0", kwargs={"fault": fault, "every": 3}, on_error="restart"
    )  # fmt: skip
    vector = make_vector(settings, seed=2, num_lanes=3)
    vector.reset()
    ends = []
    for _ in range(40):
        step = vector.step(np.ones(3, np.int64))
        ends += [] if step.final is None else step.final.time.tolist()
        if step.final is not None:
            cut = step.final.time < 8
            assert not step.final.terminal[cut].any() and step.final.last[cut].all()
    assert {3, 8} <= set(ends), "no rollout was cut off, or none was played to its end"
    assert "the lane goes on with a new one (1 so far)" in caplog.text


def test_a_world_that_does_not_begin_is_left_for_the_next_one() -> None:
    settings = EnvSettings(
        id="Faulty-v0", kwargs={"at": 0, "every": 2}, on_error="restart"
    )  # fmt: skip
    rows = make_vector(settings, seed=0, num_lanes=4).reset()
    assert (rows.world_seed % 2 == 1).all() and (rows.time == 0).all()


def test_a_lane_that_fails_too_often_ends_the_run() -> None:
    settings = EnvSettings(id="Faulty-v0", kwargs={"fault": "raise"}, on_error="restart")
    vector = make_vector(settings, seed=0, num_lanes=1)
    with pytest.raises(EnvFaultError):
        play(vector, 10**4)
    assert vector._lanes[0].restarts == _MOST_RESTARTS  # type: ignore[attr-defined]


def test_a_run_whose_environment_fails_now_and_then_is_trained_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    settings = {
        "env.id": "Faulty-v0", "env.kwargs": {"fault": "raise", "every": 5},
        "env.on_error": "restart", "rollout.steps_per_epoch": 16, "replay.context_length": 8,
    }  # fmt: skip
    api.train(tiny("gym", settings), 0, tmp_path / "run")
    assert [row["epoch"] for row in lines(tmp_path / "run")] == [1, 2]


def faulty(fault: str, first_lane: int, num_lanes: int) -> InProcessVector:
    return InProcessVector(partial(Faulty, fault), num_lanes, 0, first_lane=first_lane)


@pytest.mark.parametrize("fault", ["raise", "exit"])
def test_a_fault_in_a_worker_has_the_same_place(fault: str) -> None:
    vector = WorkerVector(partial(faulty, fault), 2, 2)
    with pytest.raises(RuntimeError, match=r"lane 0, world seed \d+, step 3"):
        play(vector)


def test_a_worker_that_hangs_is_named_and_then_an_error(caplog: pytest.LogCaptureFixture) -> None:
    vector = WorkerVector(partial(faulty, "hang"), 2, 1)
    vector._timeout = 1.0
    processes = list(vector._processes)
    with pytest.raises(RuntimeError, match=r"lanes 0..1\) did not answer for 1 seconds"):
        play(vector)
    assert "is silent for 0.5 seconds" in caplog.text
    assert not any(process.is_alive() for process in processes)


def test_an_environment_that_hangs_in_process_is_named_and_then_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = EnvSettings(id="Faulty-v0", kwargs={"fault": "hang"}, timeout_seconds=1.0)
    vector = make_vector(settings, seed=5, num_lanes=2)
    with pytest.raises(EnvFaultError) as found:
        play(vector)
    place = f"Faulty-v0, lane 0, world seed {world_seed(5, 0, 0)}, step 3"
    assert "is silent for" in caplog.text and caplog.text.count(place) == 2
    assert "did not answer for 1 seconds" in str(found.value) and place in str(found.value)
    assert "time.sleep(60)" in str(found.value), "the traceback shows what it waits for"
    vector.close()


def test_a_run_whose_environment_hangs_ends_with_its_last_complete_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    settings = {
        "env.id": "Faulty-v0", "env.kwargs": {"fault": "hang", "every": 7}, "run.epochs": 200,
        "run.save_interval": 100, "env.timeout_seconds": 1.0, "rollout.steps_per_epoch": 8,
        "replay.context_length": 8, "run.eval_interval": 200,
    }  # fmt: skip
    with pytest.raises(EnvFaultError, match="did not answer for 1 seconds"):
        api.train(tiny("gym", settings), 3, tmp_path / "run", check=False)
    kept = re.search(r"the checkpoint of epoch (\d+) is kept", caplog.text)
    assert kept is not None and len(lines(tmp_path / "run")) == int(kept[1])


def test_a_slow_environment_and_one_that_recovers_are_left_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EnvSettings(id="Faulty-v0", kwargs={"fault": "hang"}, timeout_seconds=2.0)
    vector = make_vector(settings, seed=5, num_lanes=1)
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda _: sleep(1.3))
    play(vector)
    assert "is silent for" in caplog.text and "interrupted" not in caplog.text
    sleep(1.5)  # nothing is called meanwhile, so nothing is late
    assert "interrupted" not in caplog.text


def together(fault: str) -> GymVector:
    """Lanes of a Gymnasium vector, which are stepped together."""
    return GymVector(gym.vector.SyncVectorEnv([partial(Faulty, fault)] * 2), seed=5, name="both")


def test_an_error_of_a_gymnasium_vector_names_the_lanes_that_it_may_come_from() -> None:
    with pytest.raises(EnvFaultError) as found:
        play(together("raise"))
    seeds = [world_seed(5, lane, 0) for lane in range(2)]
    for lane, seed in enumerate(seeds):
        assert f"both, lane {lane}, world seed {seed}, step 2" in str(found.value)
    assert "KeyError: 'no such joint'" in str(found.value)


@pytest.mark.parametrize("fault", ["nan obs", "nan reward"])
def test_a_gymnasium_vector_tells_of_values_that_are_not_finite_too(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    play(together(fault))
    assert caplog.text.count("NaN or infinity") == 1
    assert f"both, lane 0, world seed {world_seed(5, 0, 0)}, step 3" in caplog.text


def test_a_natively_batched_task_names_the_lanes_that_an_error_may_come_from(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    vector = make_vector(EnvSettings(id="amago/TMaze-v0"), seed=5, num_lanes=2)
    assert isinstance(vector, NativeVector)
    vector.reset()
    with monkeypatch.context() as patch, pytest.raises(EnvFaultError) as found:
        patch.setattr(vector.task, "step", lambda _: [][0])
        vector.step(np.zeros(2, np.int64))
    assert "lane 1" in str(found.value) and "IndexError" in str(found.value)
    step = vector.task.step

    def not_finite(action: Any) -> Any:
        _, *rest = step(action)
        return (np.array([0.0, np.nan], np.float32), *rest)

    monkeypatch.setattr(vector.task, "step", not_finite)
    vector.step(np.zeros(2, np.int64))
    assert "NaN or infinity" in caplog.text and "lane 1" in caplog.text


def test_a_gymnasium_vector_whose_rollouts_do_not_end_in_time_is_an_error() -> None:
    vector = GymVector(gym.vector.SyncVectorEnv([Faulty] * 2), seed=5, horizon=4)
    with pytest.raises(ValueError, match=r"horizon of 4 steps, got one that goes on .*lane 0"):
        play(vector)
    play(GymVector(gym.vector.SyncVectorEnv([Faulty] * 2), seed=5, horizon=8), 30)


def test_replaced_environments_are_counted_in_the_metrics_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    settings = {
        "env.id": "Faulty-v0", "env.kwargs": {"fault": "raise", "every": 3},
        "env.on_error": "restart", "rollout.steps_per_epoch": 16, "replay.context_length": 8,
    }  # fmt: skip
    api.train(tiny("gym", settings), 0, tmp_path / "run", view=_PlainView(2))
    counts = [row.get("env/restarts", 0) for row in lines(tmp_path / "run")]
    assert sum(counts) > 0
    assert capsys.readouterr().out.count("| restarts ") == sum(count > 0 for count in counts)


def test_workers_and_several_tasks_count_replaced_environments() -> None:
    kwargs = {"fault": "raise", "every": 1}
    single = EnvSettings(id="Faulty-v0", kwargs=kwargs, on_error="restart")
    several = EnvSettings(ids=("Faulty-v0?at=3", "Faulty-v0?at=5"), kwargs=kwargs,
                          on_error="restart")  # fmt: skip
    for settings, expected in ((single, 4), (several, 3)):
        vector = make_vector(settings, seed=0, num_lanes=2)
        play(vector, 6)
        assert vector.restarts == expected
    workers = make_vector(replace(single, num_workers=2), seed=0, num_lanes=2)
    play(workers, 6)
    assert workers.restarts == 4
    workers.close()


def test_a_stopped_worker_is_named_too() -> None:
    vector = WorkerVector(partial(faulty, ""), 2, 1)
    vector.reset()
    vector._timeout = 0.5
    os.kill(vector._processes[0].pid, signal.SIGSTOP)
    with pytest.raises(RuntimeError, match=r"did not answer for 0\.5 seconds"):
        vector.step(np.ones(2, np.int64))


PARENT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from functools import partial
import numpy as np
from test_trust_envs import faulty, WorkerVector
if __name__ == "__main__":
    vector = WorkerVector(partial(faulty, "hang"), 1, 1)
    vector.reset()
    print(vector._processes[0].pid, flush=True)
    for _ in range(3):
        vector.step(np.ones(1, np.int64))
"""


def test_a_worker_that_hangs_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, script, Path(__file__).parent], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    time.sleep(0.5)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists(), "an orphan is left"
