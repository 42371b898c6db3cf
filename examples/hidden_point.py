"""A continuous problem that needs memory: find a hidden point from how far each guess was.

    python examples/hidden_point.py [--epochs 40]

An action is a guess in the square; the observation says how far it was off, and the reward is
1 less that distance. Three guesses tell where the point is to whoever remembers them.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import gymnasium as gym
import numpy as np

import amago


class HiddenPoint(gym.Env[np.ndarray, np.ndarray]):
    """A point of the square that stays where it is for a rollout."""

    observation_space = gym.spaces.Box(0.0, 3.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    horizon = 20

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.point, self.time = self.np_random.uniform(-1.0, 1.0, 2), 0
        return np.zeros(1, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.time += 1
        distance = float(np.linalg.norm(np.asarray(action) - self.point))
        over = self.time == self.horizon
        return (
            np.array([distance], np.float32), 1.0 - distance, over, False,
            {"success": distance < 0.1},
        )  # fmt: skip


gym.register("HiddenPoint-v0", HiddenPoint)


def main(epochs: int) -> None:
    config = amago.override(amago.preset("gym"), {"run.epochs": epochs})
    with tempfile.TemporaryDirectory() as folder:
        result = amago.train(config, seed=0, run_dir=folder, env=HiddenPoint).result
        print(f"return {result['return_mean']:.2f}, at random {result['random_return_mean']:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="3 show that it runs, 40 learn")
    main(parser.parse_args().epochs)
