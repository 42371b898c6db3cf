"""Your own goal domain: an environment that says which goals each step achieved.

    python examples/custom_goals.py [--epochs 40]

Four buttons light four colours, wired differently in every world. Instructions such as
"light red, twice blue" ask for them in some order; an agent has to press, see, remember and
then do as it was told. The environment pays nothing itself: following instructions and
relabeling them in hindsight is amago's part.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import gymnasium as gym
import numpy as np

import amago
from amago.config import override
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.goals import GoalSpec
from amago.replay.describe import describe_relabel
from amago.replay.relabel import Relabeler
from amago.replay.settings import RelabelSettings
from amago.rollout.driver import drive
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.recorder import Recorder

COLOURS = ("red", "green", "blue", "white")


class Lights(gym.Env[np.ndarray, int]):
    """Press buttons; "twice blue" is achieved when blue is lit by two presses in a row."""

    goals = GoalSpec(
        3, size=2, kind="token", vocabulary=("", "light", "twice", *COLOURS), repeats=True
    )
    observation_space = gym.spaces.Box(0.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(4)
    horizon = 20

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)  # all randomness of a world comes from its seed
        self.wires, self.time, self.lit = self.np_random.permutation(4), 0, -1
        asked = [
            f"{self.np_random.choice(['light', 'twice'])} {self.np_random.choice(COLOURS)}"
            for _ in range(self.np_random.integers(1, 4))
        ]
        return np.zeros(4, np.float32), {"instruction": ", ".join(asked)}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        again, self.lit = self.wires[action] == self.lit, int(self.wires[action])
        self.time += 1
        colour = COLOURS[self.lit]
        achieved = f"light {colour}, twice {colour}" if again else f"light {colour}"
        over = self.time == self.horizon  # the end belongs to the task: terminated
        return np.eye(4, dtype=np.float32)[self.lit], 0.0, over, False, {"achieved": achieved}


def show_relabeling() -> None:
    """One rollout of random play, before and after relabeling."""
    lanes = make_vector(EnvSettings(), seed=0, num_lanes=4, make_env=Lights)
    recorder = Recorder(lanes.spec, lanes.tasks)
    rng = np.random.default_rng(0)
    settings = RelabelSettings("all", importance_sampling=False)
    relabeler = Relabeler(settings, None, repeats=Lights.goals.repeats)
    for step in drive(lanes, RandomPolicy(lanes.spec, seed=0)):
        for rollout in recorder.add(step):
            if rollout.progress[-1] < len(rollout.instruction):
                print(describe_relabel(rollout, relabeler(rollout, rng), Lights.goals))
                return


def main(epochs: int) -> None:
    show_relabeling()
    config = override(
        amago.preset("gym"),
        {
            "rollout.steps_per_epoch": Lights.horizon,
            "replay.context_length": Lights.horizon,
            "run.epochs": epochs,
            "run.updates_per_epoch": 20,
            "run.final_eval_episodes": 64,
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        result = amago.train(config, seed=0, run_dir=folder, env=Lights).result
    print(f"success {result['success_rate']:.2f}, return {result['return_mean']:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="3 show that it runs")
    main(parser.parse_args().epochs)
