"""Masked recall: pairs of symbols, answered with a multi-discrete action under a mask."""

from __future__ import annotations

import numpy as np

from amago.envs.domain import Domain
from amago.envs.tasks import draw
from amago.envs.tasks.base import Outcome, check_at_least
from amago.envs.tasks.recall import Recall
from amago.presets.base import RECIPE, Preset
from amago.types import ACTION_MASK, Array


class MaskedRecall(Recall):
    """A cue is a shape and a colour; an answer names both, each worth half.

    At every step each symbol is forbidden with probability 1/2, but the right answer never
    is. `disobeyed` counts every lane's forbidden actions.
    """

    cue_shape = (2,)

    def __init__(
        self, shapes: int = 5, colours: int = 4, length: int = 3, delay: int = 2, rounds: int = 2
    ) -> None:
        from gymnasium import spaces

        super().__init__(length, delay, rounds)
        check_at_least(2, shapes=shapes, colours=colours)
        self.sizes = np.array([shapes, colours])
        self._starts = np.array([0, shapes])
        self.observation_space = spaces.Dict(
            {
                "shown": spaces.MultiDiscrete(self.sizes + 1),
                "asked": spaces.MultiBinary(1),
                ACTION_MASK: spaces.MultiBinary(int(self.sizes.sum())),
            }
        )
        self.action_space = spaces.MultiDiscrete(self.sizes)

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.disobeyed = np.zeros(num_lanes, np.int64)
        self.allowed = np.ones((num_lanes, self.horizon + 1, int(self.sizes.sum())), np.bool_)

    def draw_world(self, lane: int, rng: np.random.Generator) -> None:
        self.cues[lane] = rng.integers(self.sizes, size=(self.rounds, self.length, 2))
        self.allowed[lane] = rng.random(self.allowed[lane].shape) < 0.5
        # Of every symbol set at least one stays; of the right answer always.
        for start, size in ((0, self.sizes[0]), (self.sizes[0], self.sizes[1])):
            kept = rng.integers(size, size=self.horizon + 1)
            self.allowed[lane, np.arange(self.horizon + 1), start + kept] = True

    def mask(self) -> Array:
        """Flags of all symbols now, [N, shapes + colours]."""
        cue, _, asking = self.current_cues()
        flags = self.allowed[self._lanes, np.minimum(self.time, self.horizon)].copy()
        for column in (cue[:, 0], self.sizes[0] + cue[:, 1]):
            flags[self._lanes, column] |= asking
        return flags

    def observe(self) -> dict[str, Array]:
        cue, showing, asking = self.current_cues()
        shown = np.where(showing[:, None], cue + 1, 0).astype(np.uint8)
        return {"shown": shown, "asked": asking[:, None].copy(), ACTION_MASK: self.mask()}

    def step(self, action: Array) -> Outcome:
        columns = np.asarray(action) + self._starts
        self.disobeyed += ~self.mask()[self._lanes[:, None], columns].all(axis=1)
        return super().step(action)

    def score(self, action: Array, cue: Array) -> Array:
        share: Array = (action == cue).mean(axis=1)
        return share

    def render(self, lane: int) -> Array:
        """Symbols as two rows of boxes: forbidden ones dark, the shown or asked ones coloured."""
        cell = 56
        cue, showing, asking = (x[lane] for x in self.current_cues())
        frame = draw.canvas(4 * cell, (int(self.sizes.max()) + 1) * cell, draw.FLOOR)
        flags = np.split(self.mask()[lane], [int(self.sizes[0])])
        for row, part in enumerate(flags):
            for column, allowed in enumerate(part):
                colour = draw.SHADE if allowed else draw.WALL
                if column == cue[row] and (showing or asking):
                    colour = draw.HINT if showing else draw.GOAL
                top, left = (1.5 * row + 0.5) * cell, (column + 0.5) * cell
                draw.box(frame, top + 2, left + 2, top + cell - 2, left + cell - 2, colour)
        return frame


DOMAIN = Domain(
    make=MaskedRecall,
    ids={"amago/MaskedRecall-v0": {}},
    presets={
        "masked-recall": Preset(
            "Masked recall: repeat pairs of symbols with multi-discrete actions under a mask",
            RECIPE,
            {"env.id": "amago/MaskedRecall-v0"},
        )
    },
)
