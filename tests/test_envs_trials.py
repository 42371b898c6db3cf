"""Many episodes as one rollout."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.trials import Trials


class Short(gym.Env[Any, Any]):
    """Three steps a trial; observes (resets so far, step); remembers the seeds it was given."""

    def __init__(self, truncates: bool = False) -> None:
        self.observation_space = gym.spaces.Box(0, 99, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.truncates, self.resets, self.seeds = truncates, 0, []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.resets, self.t = self.resets + 1, 0
        return np.array([self.resets, 0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        over, obs = self.t == 3, np.array([self.resets, self.t], np.float32)
        info = {"success": over}
        return obs, 10.0 * self.t, over and not self.truncates, over and self.truncates, info


def roll(env: gym.Env[Any, Any], limit: int = 50) -> list[Any]:
    rows = [env.reset(seed=4)[0].tolist()]
    for _ in range(limit):
        obs, reward, terminated, truncated, info = env.step(0)
        rows.append((obs.tolist(), reward, terminated, truncated, info.get("first", False)))
        if terminated or truncated:
            break
    return rows


@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize("terminal", [False, True])
def test_a_rollout_of_two_trials_row_by_row(truncates, terminal):
    env = Short(truncates)
    end = (terminal, not terminal)
    assert roll(Trials(env, trials=2, horizon_is_terminal=terminal)) == [
        [1, 0],
        ([1, 1], 10.0, False, False, False),
        ([1, 2], 20.0, False, False, False),
        ([2, 0], 30.0, False, False, True),
        ([2, 1], 10.0, False, False, False),
        ([2, 2], 20.0, False, False, False),
        ([2, 3], 30.0, *end, False),
    ]
    assert env.seeds == [4, None]


def test_with_a_horizon_alone_trials_are_played_until_it_is_met():
    rows = roll(Trials(Short(), horizon=8))
    assert len(rows) == 9 and [row[4] for row in rows[1:]].count(True) == 2
    assert rows[-1] == ([3, 2], 20.0, True, False, False)


def test_whichever_of_trials_and_horizon_comes_first_ends_the_rollout():
    assert len(roll(Trials(Short(), trials=2, horizon=5))) == 6
    assert len(roll(Trials(Short(), trials=1, horizon=5))) == 4


def test_a_second_rollout_starts_its_counters_anew():
    env = Trials(Short(), trials=2)
    assert len(roll(env)) == len(roll(env)) == 7


def test_the_horizon_is_known_where_the_length_of_a_trial_is():
    limited = gym.wrappers.TimeLimit(Short(), 9)
    assert Trials(limited, trials=4).horizon == 36
    assert Trials(limited, trials=4, horizon=20).horizon == 20
    assert Trials(Short(), trials=4).horizon is None


def test_success_of_a_trial_is_reported_on_the_row_that_follows_it():
    env = Trials(Short(), trials=2)
    env.reset(seed=0)
    infos = [env.step(0)[4] for _ in range(4)]
    assert [info["success"] for info in infos] == [False, False, True, False]


@pytest.mark.parametrize("arguments", [{}, {"trials": 0}, {"horizon": 0}])
def test_senseless_numbers_of_trials_are_refused(arguments):
    with pytest.raises(ValueError, match="expected"):
        Trials(Short(), **arguments)


def test_soft_resets_reach_the_rows_with_their_real_action_and_reward():
    vector = make_vector(EnvSettings(trials=3), seed=0, num_lanes=2, make_env=Short)
    vector.reset()
    steps = [vector.step(np.array([0, 1])) for _ in range(9)]
    rows = steps[2].rows
    assert rows.first.all() and not rows.terminal.any() and not rows.last.any()
    assert rows.time.tolist() == [3, 3] and rows.prev_reward.tolist() == [30, 30]
    assert rows.prev_action.tolist() == [0, 1]
    assert steps[-1].final is not None and steps[-1].final.terminal.all()
    assert not steps[-1].final.first.any()


def test_trials_of_amagos_own_tasks_stay_in_one_world():
    settings = EnvSettings(id="amago/TMaze-v0", kwargs={"corridor": 2}, trials=8)
    vector = make_vector(settings, seed=0, num_lanes=6)
    assert vector.spec.horizon == 24
    cues = [vector.reset().obs["observation"][:, 1]]
    for _ in range(23):
        rows = vector.step(np.zeros(6, int)).rows
        if rows.first.all():
            cues.append(rows.obs["observation"][:, 1])
    assert len(cues) == 8 and all(np.array_equal(cue, cues[0]) for cue in cues)
    assert set(cues[0].tolist()) == {-1.0, 1.0}
