"""Pixel recall: a coloured frame, later four coloured corners, one of which to choose."""

from __future__ import annotations

import numpy as np

from amago.envs.domain import Domain
from amago.envs.tasks import draw
from amago.envs.tasks.base import check_at_least
from amago.envs.tasks.recall import Recall
from amago.presets.base import RECIPE, Preset
from amago.types import BARE_KEY, Array

_COLOURS = np.array([[220, 60, 50], [60, 170, 80], [60, 100, 210], [235, 190, 50]], np.uint8)
_CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))


class PixelRecall(Recall):
    """Frames [size, size, 3]. A cue is a square of one of four colours at a random place; the
    question shows all four colours, one per corner, and the answer is the corner with the
    cue's colour. Grey specks move in between. `shuffled` shows the colours in another order
    each time: then only cue and question together tell the answer, and neither alone is of
    any use, which takes much longer to find out. `opposite` wants the corner across from it,
    and shows that by a brighter background."""

    def __init__(
        self,
        size: int = 16,
        delay: int = 3,
        rounds: int = 4,
        shuffled: bool = False,
        opposite: bool = False,
    ) -> None:
        from gymnasium import spaces

        check_at_least(16, size=size)
        super().__init__(1, delay, rounds)
        self.size, self.shuffled, self.opposite = size, shuffled, opposite
        self.cue_shape = (3,)  # colour, row, column
        self.observation_space = spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.action_space = spaces.Discrete(4)

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.corners = np.zeros((num_lanes, self.rounds, 4), np.int64)
        self.specks = np.zeros((num_lanes, self.horizon + 1, 2), np.int64)

    def draw_world(self, lane: int, rng: np.random.Generator) -> None:
        count = (self.rounds, self.length)
        self.cues[lane, ..., 0] = rng.integers(4, size=count)
        self.cues[lane, ..., 1:] = rng.integers(self.size - self.size // 3, size=(*count, 2))
        self.corners[lane] = np.arange(4)
        if self.shuffled:
            self.corners[lane] = rng.permuted(self.corners[lane], axis=1)
        self.specks[lane] = rng.integers(self.size, size=self.specks[lane].shape)

    def observe(self) -> dict[str, Array]:
        cue, showing, asking = self.current_cues()
        number, side = np.minimum(self.phase[0], self.rounds - 1), self.size // 3
        background = 90 if self.opposite else 20
        frames = np.full((self.num_lanes, self.size, self.size, 3), background, np.uint8)
        at = self.specks[self._lanes, np.minimum(self.time, self.horizon)]
        frames[self._lanes, at[:, 0], at[:, 1]] = 128
        for lane in np.flatnonzero(showing):
            colour, row, column = cue[lane]
            frames[lane, row : row + side, column : column + side] = _COLOURS[colour]
        far = self.size - side
        for corner, (down, right) in enumerate(_CORNERS):
            colours = _COLOURS[self.corners[self._lanes, number, corner]]
            patch = frames[:, down * far :, right * far :][:, :side, :side]
            patch[asking] = colours[asking, None, None]
        return {BARE_KEY: frames}

    def score(self, action: Array, cue: Array) -> Array:
        number = np.minimum(self.phase[0], self.rounds - 1)
        corner = 3 - np.asarray(action) if self.opposite else action
        right: Array = self.corners[self._lanes, number, corner] == cue[:, 0]
        return right.astype(np.float64)

    def render(self, lane: int) -> Array:
        """The frame itself, enlarged."""
        frame: Array = self.observe()[BARE_KEY][lane]
        return draw.enlarged(frame, max(1, 224 // self.size))


_CPU = {"env.id": "amago/PixelRecall-v0"}
# Two tasks with opposite answers; the rewards of one are a thousand times the other's. A policy
# gradient pushes hardest where rewards are large, and too early: cloning, which gives equal weight
# to all answers that are better than the actor's own, has to bring it back.
_TWO_TASKS = {
    **_CPU,
    "env.kwargs": {"delay": 1, "rounds": 12},
    "env.ids": (
        "amago/PixelRecall-v0",
        "amago/PixelRecall-v0?opposite=True&reward_scale=1000",
    ),
    "heads.critic": "two_hot",
    "agent.acting_discount": 0.0,
    "terms.cloning.weight": 1.0,
    "run.epochs": 60,
}

DOMAIN = Domain(
    make=PixelRecall,
    ids={"amago/PixelRecall-v0": {}},
    presets={
        "pixel-recall": Preset(
            "Pixel recall: a coloured frame now, its colour among four later", RECIPE, _CPU
        ),
        "multi-task": Preset(
            "Two recall tasks at once whose rewards differ a thousandfold", RECIPE, _TWO_TASKS
        ),
    },
)
