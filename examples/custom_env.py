"""Your own environment: any gymnasium.Env, handed over as a function that makes one.

    python examples/custom_env.py [--epochs 40]

Nothing in this one says which arm pays: an agent has to try, remember and stay, within
one rollout. 40 epochs earned 18.7 of 20; with `--memory feedforward`, which knows no more
than its last action and reward, 13.9; random play 4.7.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import gymnasium as gym
import numpy as np

import amago
from amago.config import override


class HiddenArm(gym.Env[np.ndarray, int]):
    """Four arms, of which one pays in this world."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(4)
    horizon = 20  # most steps of a rollout; a time limit of Gymnasium would do as well

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)  # all randomness of a world comes from its seed
        self.arm, self.time = self.np_random.integers(4), 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.time += 1
        pays = float(action == self.arm)
        over = self.time == self.horizon  # the end belongs to the task: terminated
        return np.zeros(1, np.float32), pays, over, False, {"success": bool(pays)}


def main(epochs: int, memory: str) -> None:
    config = override(
        amago.preset("gym"),
        {
            "memory": memory,
            "rollout.steps_per_epoch": HiddenArm.horizon,
            "replay.context_length": HiddenArm.horizon,
            "agent.acting_discount": 0.9,
            "run.epochs": epochs,
            "run.updates_per_epoch": 20,
            "run.final_eval_episodes": 64,
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        result = amago.train(config, seed=0, run_dir=folder, env=HiddenArm).result
        print(f"return {result['return_mean']:.2f}, at random {result['random_return_mean']:.2f}")
        print("per tenth of the rollout:", np.round(result["return_per_block"], 2))

        policy = amago.load(folder, env=HiddenArm)
        print(amago.evaluate(policy, HiddenArm, episodes=8, seed=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="3 show that it runs, 40 learn")
    parser.add_argument(
        "--memory", default="transformer", choices=("transformer", "gru", "feedforward")
    )
    options = parser.parse_args()
    main(options.epochs, options.memory)
