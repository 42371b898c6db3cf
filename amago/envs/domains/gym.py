"""Any Gymnasium environment, with settings that ask for nothing special."""

from __future__ import annotations

from amago.envs.domain import Domain
from amago.presets.base import PAPER, RECIPE, Preset
from amago.presets.sizes import Size

# Episodes of an unknown environment may be long and slow: half the lanes of the recipe, and a
# memory of 64 steps unless `amago check-env` suggests another.
_GYM = {
    "env.id": "CartPole-v1",
    "env.num_lanes": 48,
    "rollout.steps_per_epoch": 200,
    "replay.context_length": 64,
}

# Tables 3 and 4 have no column for LunarLander, which Figure 11 trains with a context of 128:
# the widths are those of Wind and T-Maze.
_SIZE = Size(128, 2, 8, encoder=(128, 128, 128), heads=(256, 256))
_PAPER = {**_SIZE.settings(), "env.id": "LunarLander-v3", "replay.context_length": 128}

DOMAIN = Domain(
    {
        "gym": Preset("Any Gymnasium environment: --env.id CartPole-v1", RECIPE, _GYM),
        "gym/paper": Preset(
            "Any Gymnasium environment, sizes of the paper's Wind and T-Maze", PAPER, _PAPER
        ),
    },
    paper_size=_SIZE,
)
