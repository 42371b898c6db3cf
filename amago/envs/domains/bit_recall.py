"""Bit recall: a pattern of bits, answered with a multi-binary action."""

from __future__ import annotations

import numpy as np

from amago.envs.domain import Domain
from amago.envs.tasks import draw
from amago.envs.tasks.base import check_at_least
from amago.envs.tasks.recall import Recall
from amago.presets.base import RECIPE, Preset
from amago.types import BARE_KEY, Array


class BitRecall(Recall):
    """A cue is `bits` random bits; an answer is worth the share of them that is right, beyond
    the half that guessing gets."""

    def __init__(self, bits: int = 6, length: int = 1, delay: int = 3, rounds: int = 4) -> None:
        from gymnasium import spaces

        check_at_least(1, bits=bits)
        super().__init__(length, delay, rounds)
        self.bits = bits
        self.cue_shape = (bits,)
        self.observation_space = spaces.MultiBinary(bits + 2)
        self.action_space = spaces.MultiBinary(bits)

    def draw_world(self, lane: int, rng: np.random.Generator) -> None:
        self.cues[lane] = rng.integers(2, size=self.cues[lane].shape)

    def observe(self) -> dict[str, Array]:
        """The bits while they are shown, then flags: shown, asked for."""
        cue, showing, asking = self.current_cues()
        flags = np.stack([showing, asking], axis=1)
        return {BARE_KEY: np.concatenate([showing[:, None] & (cue > 0), flags], axis=1)}

    def score(self, action: Array, cue: Array) -> Array:
        right: Array = (action == cue).mean(axis=1)
        return 2.0 * right - 1.0

    def render(self, lane: int) -> Array:
        """One box per bit: set ones filled, yellow while shown, green while asked for."""
        cell = 104
        cue, showing, asking = (x[lane] for x in self.current_cues())
        frame = draw.canvas(2 * cell, (self.bits + 1) * cell, draw.FLOOR)
        for bit, is_set in enumerate(cue):
            lit = draw.HINT if showing else draw.GOAL
            colour = lit if is_set and (showing or asking) else draw.SHADE
            left = (bit + 0.5) * cell
            draw.box(frame, cell / 2, left + 2, 1.5 * cell, left + cell - 2, colour)
        return frame


DOMAIN = Domain(
    make=BitRecall,
    ids={"amago/BitRecall-v0": {}},
    presets={
        "bit-recall": Preset(
            "Bit recall: repeat a pattern of bits with a multi-binary action",
            RECIPE,
            {"env.id": "amago/BitRecall-v0"},
        )
    },
)
