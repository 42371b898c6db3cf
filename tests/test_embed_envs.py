"""Environments that users bring: vectors, MiniGrid, classes by name, wrappers, foreign ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from test_run_helpers import command

import amago
from amago.envs.in_process import checked_env
from amago.envs.registry import make_vector, single_env
from amago.envs.settings import EnvSettings
from amago.envs.symbolic_grid import _VOCABULARY
from amago.replay.store import TrajectoryStore
from amago.saved.header import go_on_command
from amago.types import Trajectory

pytestmark = pytest.mark.usefixtures("no_curves")

SMALL = {
    "run.updates_per_epoch": 1,
    "run.eval_episodes": 4,
    "run.final_eval_episodes": 4,
    "rollout.steps_per_epoch": 12,
    "env.num_lanes": 2,
    "env.eval_lanes": 2,
    "replay.context_length": 8,
    "replay.batch_rows": 24,
    "run.threads": 1,
    "run.report": False,
}
COUNTER = '''
import gymnasium as gym
import numpy as np


class Counter(gym.Env):
    """Shows how many steps were made; a 1 in the fifth ends it, the seventh cuts it off."""

    observation_space = gym.spaces.Box(0.0, 99.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    horizon = 7

    def __init__(self, pay=1.0):
        self.pay = pay

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        over = bool(action) and self.time == 5
        obs = np.full(1, self.time, np.float32)
        return obs, self.pay * self.time, over, self.time == 7 and not over, {}


class Doubled(gym.RewardWrapper):
    def __init__(self, env, factor=2):
        super().__init__(env)
        self.factor = factor

    def reward(self, reward):
        return self.factor * reward
'''


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the user's, in the working folder."""
    (tmp_path / "user_envs.py").write_text(COUNTER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("user_envs", None)
    return __import__("user_envs").Counter


def _recorded(monkeypatch: pytest.MonkeyPatch) -> list[Trajectory]:
    """Every trajectory that reaches a replay from here on."""
    kept: list[Trajectory] = []
    append = TrajectoryStore.append

    def record(store: TrajectoryStore, trajectories: Any) -> Any:
        kept.extend(trajectories)
        return append(store, trajectories)

    monkeypatch.setattr(TrajectoryStore, "append", record)
    return kept


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_episodes_of_a_vector_environment_begin_and_end_where_they_do(
    counter: Any, mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _recorded(monkeypatch)
    make = lambda: SyncVectorEnv([counter] * 3, autoreset_mode=mode)  # noqa: E731
    run = amago.train("gym", env=make, epochs=2, set=SMALL, run_dir="run", progress=False)
    assert run.config.env.num_lanes == run.config.env.eval_lanes == 3
    ends = set()
    assert len(kept) >= 6
    for trajectory in kept:
        steps = np.arange(trajectory.num_steps + 1)
        np.testing.assert_array_equal(trajectory.obs["observation"][:, 0], steps)
        np.testing.assert_array_equal(trajectory.prev_reward, steps)
        np.testing.assert_array_equal(trajectory.first, steps == 0)
        ended = bool(trajectory.prev_action[-1]) and steps[-1] == 5
        assert ended or steps[-1] == 7
        np.testing.assert_array_equal(trajectory.terminal, (steps == steps[-1]) & ended)
        ends.add(ended)
    assert ends == {True, False}
    again = amago.evaluate(run.policy, make, 4, seed=1, greedy=True)
    assert (
        again["return_mean"]
        == amago.evaluate(run.policy, counter, 4, seed=1, greedy=True)["return_mean"]
    )


def test_a_vector_that_resets_on_request_trains_exactly_as_single_environments(
    counter: Any,
) -> None:
    make = lambda: SyncVectorEnv([counter] * 2, autoreset_mode=AutoresetMode.DISABLED)  # noqa: E731
    amago.train("gym", env=counter, epochs=2, set=SMALL, run_dir="single", progress=False)
    amago.train("gym", env=make, epochs=2, set=SMALL, run_dir="vector", progress=False)
    metrics = [Path(name, "metrics.jsonl").read_bytes() for name in ("single", "vector")]
    assert metrics[0] == metrics[1]


def test_a_vector_that_the_user_holds_stays_open(counter: Any) -> None:
    vector = SyncVectorEnv([counter] * 2)
    run = amago.train("gym", env=vector, epochs=1, set=SMALL, run_dir="run", progress=False)
    assert amago.evaluate(run.policy, vector, 4)["episodes"] == 4
    assert not vector.closed and "env=SyncVectorEnv, epoch 1 of 1" in repr(run)
    with pytest.raises(ValueError, match=r"--env.trials does not go with a vector environment"):
        amago.train("gym", env=vector, trials=3, set=SMALL)


def test_minigrid_is_played_by_its_id_with_ids_for_cells_and_words() -> None:
    pytest.importorskip("minigrid")
    vector = make_vector(EnvSettings(id="BabyAI-GoToRedBall-v0"), seed=0, num_lanes=2)
    kinds = {key: (spec.kind, spec.size) for key, spec in vector.spec.obs.items()}
    assert kinds["image"] == ("category", 11) and kinds["direction"] == ("category", 4)
    assert kinds["mission"][0] == "category"
    rows = vector.reset()
    for lane, seed in enumerate(rows.world_seed):
        text = gym.make("BabyAI-GoToRedBall-v0").reset(seed=int(seed))[0]["mission"]
        told = [_VOCABULARY[number - 1] for number in rows.obs["mission"][lane] if number]
        assert told == text.split() and told[:2] == ["go", "to"]
    vector.close()
    same = single_env(EnvSettings(id="MiniGrid-MemoryS7-v0")).observation_space
    assert same == single_env(EnvSettings(id="BabyAI-GoToRedBall-v0")).observation_space
    pixels = EnvSettings(
        id="MiniGrid-Empty-5x5-v0", wrappers=("minigrid.wrappers:RGBImgPartialObsWrapper",)
    )
    assert single_env(pixels).observation_space["image"].high.max() == 255  # type: ignore[index]


def test_a_run_made_from_python_is_evaluated_when_its_class_is_named_again(
    counter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    amago.train("gym", env=counter, epochs=1, set=SMALL, run_dir="run", progress=False)
    code, _, error = command(capsys, "eval", "run", "--episodes", "2")
    assert code == 2 and "--env module:Class" in error
    code, out, error = command(
        capsys, "eval", "run", "--episodes", "2", "--env", "user_envs:Counter", "--json"
    )
    assert code == 0 and json.loads(out)["episodes"] == 2, error
    code, _, error = command(
        capsys, "resume", "run", "--epochs", "+1", "--env", "user_envs:Counter"
    )
    assert code == 0 and amago.Run("run").result["epochs"] == 2, error


def test_classes_and_wrappers_are_named_on_the_command_line_and_need_trust_later(
    counter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--env.id", "user_envs:Counter", "--env.kwargs.pay", "3.0",
             "--env.wrappers", "user_envs:Doubled?factor=5"]  # fmt: skip
    small = [part for key, value in SMALL.items()
             for part in (f"--{key.replace('_', '-')}", str(value))]  # fmt: skip
    code, out, error = command(
        capsys, "train", "gym", *flags, *small, "--epochs", "1", "--run-dir", "run", "--no-check"
    )
    assert code == 0, error
    hints = [line for line in out[out.index("next:") :].splitlines() if "amago doctor" not in line]
    assert len(hints) == 4 and all(line.endswith(" --trust") for line in hints[1:]), hints
    assert go_on_command(Path("run")) == "amago resume run --trust"
    settings = amago.Run("run").config.env
    env = single_env(settings)
    env.reset(seed=0)
    assert env.step(0)[1] == 15.0
    code, _, error = command(capsys, "eval", "run", "--episodes", "2")
    assert code == 2 and "user_envs:Doubled" in error and "--trust" in error
    code, _, error = command(capsys, "eval", "run", "--env", "user_envs:Counter")
    assert code == 2 and "user_envs:Doubled" in error  # naming the class vouches for no wrapper
    assert command(capsys, "eval", "run", "--episodes", "2", "--trust")[0] == 0
    assert command(capsys, "watch", "run", "--speed", "100000")[0] == 2
    assert command(capsys, "watch", "run", "--speed", "100000", "--trust")[0] == 0


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"id": "user_envs:Countr"}, "did you mean Counter.*module:Class"),
        ({"id": "user_envs:Zzz"}, "'Zzz'; user_envs has Counter, .*module:Class"),
        ({"id": "json:Zzz"}, "'Zzz'; json has no environment; .*module:Class"),
        ({"id": "no_such_module:Counter"}, "module 'no_such_module', which cannot be imported"),
        ({"id": "user_envs:Counter", "wrappers": ("Doubled",)}, "takes module:Wrapper"),
        ({"id": "user_envs:Counter", "wrappers": ("user_envs:Double",)}, "did you mean Doubled"),
        ({"id": "user_envs:Counter", "wrappers": ("user_envs:Doubled?x=1",)}, "argument 'x'; Doub"),
        ({"id": "user_envs:Counter", "wrappers": ("user_envs:zzz",)}, "'zzz'; expected a class"),
        ({"id": "user_envs:Counter", "kwargs": {"pays": 1}}, "has no argument 'pays'"),
    ],
)
def test_names_that_lead_nowhere_are_explained(
    counter: Any, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        single_env(EnvSettings(**changes))


def test_what_only_looks_like_an_environment_is_told_to_become_one() -> None:
    methods = {"reset": lambda self: None, "step": lambda self, action: (0, 0.0, True, {})}
    with pytest.raises(
        ValueError, match=r"Old, which has step\(\).* no gymnasium.Env; derive it.*V21"
    ):
        amago.train("gym", env=type("Old", (), methods), set=SMALL)


def _foreign(package: str) -> Any:
    base = type("Base", (), {"__module__": f"{package}.core"})
    return type("Theirs", (base,), {})()


@pytest.mark.parametrize(
    ("package", "what"),
    [
        ("pettingzoo", "a PettingZoo environment, which has several agents"),
        ("dm_env", "a dm_env environment; convert it with shimmy"),
        ("gym", "an environment of old Gym.*shimmy"),
        ("elsewhere", "got Theirs; return an instance of gymnasium.Env"),
    ],
)
def test_environments_of_other_interfaces_are_refused_by_name(package: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        checked_env(_foreign(package))
    for given in (_foreign(package), lambda: _foreign(package)):
        with pytest.raises(ValueError, match=what.partition(";")[0]):
            amago.train("gym", env=given, set=SMALL)
    policy = amago.load("zoo:t-maze")
    for given in (_foreign(package), lambda: _foreign(package)):
        with pytest.raises(ValueError, match=what.partition(";")[0]):
            amago.evaluate(policy, given)


def test_a_foreign_environment_is_checked_before_training(
    counter: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Bad(counter):  # type: ignore[misc]
        def step(self, action: int) -> Any:
            return super().step(action)[:4]

    with pytest.raises(ValueError, match=r"Bad cannot be trained on: step\(\) returned 4 values"):
        amago.train("gym", env=Bad, epochs=1, set=SMALL, run_dir="bad")
    assert not Path("bad").exists()

    class Unseeded(counter):  # type: ignore[misc]
        def reset(self, **arguments: Any) -> Any:
            super().reset(**arguments)
            return np.random.rand(1).astype(np.float32), {}

    amago.train("gym", env=Unseeded, epochs=1, set=SMALL, run_dir="a", progress=False)
    assert "draw all randomness from self.np_random" in caplog.text
    caplog.clear()
    amago.train("gym", env=Unseeded, epochs=1, set=SMALL, run_dir="b", check=False, progress=False)
    assert "np_random" not in caplog.text
