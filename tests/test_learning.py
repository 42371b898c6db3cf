"""Code that runs is not code that learns: small tasks that need memory, and controls without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import amago
from amago.config import Config, override

pytestmark = pytest.mark.usefixtures("no_curves")

QUICK = {
    "run.threads": 1,
    "run.report": False,
    "run.updates_per_epoch": 50,
    "run.eval_interval": 1000,
    "run.eval_episodes": 16,
    "run.save_interval": 1000,
    "run.final_eval_episodes": 128,
    "optim.learning_rate": 1e-3,
    "optim.warmup_updates": 100,
}


class RecallTarget(gym.Env[Any, Any]):
    """A number in [-1, 1] is shown first; the last action pays 1 - |error| for repeating it."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    horizon = 4

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.target, self.time = self.np_random.uniform(-1, 1), 0
        return np.array([self.target], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        done = self.time == self.horizon
        reward = 1.0 - abs(float(action[0]) - self.target) if done else 0.0
        return np.zeros(1, np.float32), reward, done, False, {}


def _t_maze(memory: str, epochs: int) -> Config:
    changes = {"env.kwargs": {"corridor": 10}, "memory": memory, "run.epochs": epochs}
    changes["replay.batch_rows"] = None  # 2,400 rows are for corridors of 100
    return override(amago.preset("t-maze"), {**QUICK, **changes})


def _recall(memory: str) -> Config:
    changes = {
        "memory": memory,
        "run.epochs": 20,
        "agent.greedy": True,
        "agent.discounts": [0.5, 0.9],
        "agent.acting_discount": 0.9,
        "env.num_lanes": 256,
        "replay.batch_rows": 360,
    }
    return override(amago.preset("wind"), {**QUICK, **changes})


def test_a_transformer_recalls_the_first_step_of_a_t_maze_at_the_last(tmp_path: Path) -> None:
    assert (
        amago.train(_t_maze("transformer", 15), 0, tmp_path / "run").result["return_mean"] >= 0.95
    )


def test_without_memory_a_t_maze_stays_at_one_half(tmp_path: Path) -> None:
    assert (
        amago.train(_t_maze("feedforward", 15), 0, tmp_path / "run").result["return_mean"] <= 0.65
    )


@pytest.mark.parametrize("memory", ["transformer", pytest.param("gru", marks=pytest.mark.slow)])
def test_continuous_actions_repeat_a_number_that_was_shown_once(
    memory: str, tmp_path: Path
) -> None:
    result = amago.train(_recall(memory), 0, tmp_path / "run", env=RecallTarget).result
    assert result["return_mean"] >= 0.85


def test_without_memory_the_number_is_lost(tmp_path: Path) -> None:
    # The best constant, 0, is wrong by 1/2 on average.
    result = amago.train(_recall("feedforward"), 0, tmp_path / "run", env=RecallTarget).result
    assert result["return_mean"] <= 0.6
