"""LunarLander without its velocities: how fast it falls must be told from what was seen before.

    python examples/hidden_lunar_lander.py [--epochs 40]

Needs the extra amago[box2d].
"""

from __future__ import annotations

import argparse
import tempfile

import gymnasium as gym
import numpy as np

import amago

_SEEN = [0, 1, 4, 6, 7]
"""Place, angle and the legs' contacts; 2, 3 and 5 are velocities."""


class HiddenLunarLander(gym.ObservationWrapper[np.ndarray, int, np.ndarray]):
    """Gymnasium's lander with five of its eight numbers."""

    def __init__(self) -> None:
        from gymnasium.envs.box2d import LunarLander

        super().__init__(gym.wrappers.TimeLimit(LunarLander(), max_episode_steps=1000))
        space = self.env.observation_space
        assert isinstance(space, gym.spaces.Box)
        self.observation_space = gym.spaces.Box(space.low[_SEEN], space.high[_SEEN])

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation[_SEEN]


gym.register("HiddenLunarLander-v0", HiddenLunarLander)


def main(epochs: int) -> None:
    short = {"env.num_lanes": 24, "rollout.steps_per_epoch": 200, "replay.context_length": 64}
    config = amago.override(amago.preset("gym"), {"run.epochs": epochs, **short})
    with tempfile.TemporaryDirectory() as folder:
        result = amago.train(config, seed=0, run_dir=folder, env=HiddenLunarLander).result
        print(f"return {result['return_mean']:.0f}, at random {result['random_return_mean']:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="3 show that it runs")
    main(parser.parse_args().epochs)
