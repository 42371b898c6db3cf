"""A card game as users bring them: a dictionary of observations, a mask, nothing but memory helps.

    python examples/card_game.py [--epochs 40] [--pairs 4]

Cards lie face down. A step turns one; the second of a turn is kept when it matches the first,
otherwise both are turned down again. A pair pays its share of 1.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import gymnasium as gym
import numpy as np

import amago

Observation = dict[str, Any]


class CardGame(gym.Env[Observation, int]):
    """Pairs of cards to be found by turning two at a time."""

    def __init__(self, pairs: int = 4, horizon: int = 24) -> None:
        self.pairs, self.horizon = pairs, horizon
        self.action_space = gym.spaces.Discrete(2 * pairs)
        self.observation_space = gym.spaces.Dict(
            {
                "face": gym.spaces.Discrete(pairs + 1),  # of the card just turned; 0 at the start
                "open": gym.spaces.Discrete(2),  # whether it waits for a second
                "action_mask": gym.spaces.MultiBinary(2 * pairs),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.faces = self.np_random.permutation(np.repeat(np.arange(self.pairs), 2))
        self.gone = np.zeros(2 * self.pairs, np.bool_)
        self.waiting: int | None = None
        self.time = 0
        return self._observe(0), {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self.time += 1
        reward = 0.0
        if self.waiting is None:
            self.waiting = int(action)
        else:
            if self.faces[action] == self.faces[self.waiting]:
                self.gone[[action, self.waiting]] = True
                reward = 1.0 / self.pairs
            self.waiting = None
        over = bool(self.gone.all()) or self.time == self.horizon
        success = {"success": bool(self.gone.all())}
        return self._observe(int(self.faces[action]) + 1), reward, over, False, success

    def _observe(self, face: int) -> Observation:
        mask = (~self.gone).astype(np.int8)
        if self.waiting is not None:
            mask[self.waiting] = 0
        return {"face": face, "open": int(self.waiting is not None), "action_mask": mask}


gym.register("CardGame-v0", CardGame)


def main(epochs: int, pairs: int) -> None:
    config = amago.override(amago.preset("gym"), {"run.epochs": epochs})
    with tempfile.TemporaryDirectory() as folder:
        result = amago.train(
            config, seed=0, run_dir=folder, env=lambda: CardGame(pairs, 6 * pairs)
        ).result
        print(f"return {result['return_mean']:.2f}, at random {result['random_return_mean']:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="3 show that it runs")
    parser.add_argument("--pairs", type=int, default=4)
    options = parser.parse_args()
    main(options.epochs, options.pairs)
