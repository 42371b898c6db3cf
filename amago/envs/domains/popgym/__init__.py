"""POPGym: 48 environments that need memory."""

from __future__ import annotations

from amago.envs.domain import Domain
from amago.presets.base import PAPER, RECIPE, Preset
from amago.presets.sizes import Size

_LEVELS = ("Easy", "Medium", "Hard")
_FAMILIES = (
    "Autoencode", "RepeatPrevious", "RepeatFirst", "CountRecall", "PositionOnlyCartPole",
    "PositionOnlyPendulum", "VelocityOnlyCartPole", "NoisyPositionOnlyCartPole",
    "NoisyPositionOnlyPendulum", "MultiarmedBandit", "HigherLower", "Battleship",
    "Concentration", "MineSweeper",
)  # fmt: skip
_NAVIGATION = ("LabyrinthEscape", "LabyrinthExplore")

IDS = tuple(f"popgym/{family}{level}" for family in _FAMILIES for level in _LEVELS)
"""The 42 ids of the benchmark without navigation."""
PAPER_IDS = tuple(name for name in IDS if "VelocityOnly" not in name)
"""Most likely the 39 environments of the paper's Figure 3."""
ALL_IDS = IDS + tuple(f"popgym/{family}{level}" for family in _NAVIGATION for level in _LEVELS)

_CPU = {"env.id": "popgym/RepeatPreviousEasy"}
_SIZE = Size(256, 3, 8, encoder=(512, 512, 200), heads=(256, 256))
# Of Table 4 the numbers in brackets; 15M steps, as in Figure 3.
_PAPER = {
    **_SIZE.settings(),
    "env.id": "popgym/RepeatPreviousEasy",
    "env.num_lanes": 24,
    "rollout.steps_per_epoch": 1000,
    "replay.capacity": 80_000,
    "agent.reward_scale": 100.0,
    "run.epochs": 625,
}

DOMAIN = Domain(
    extra="popgym",
    make="amago.envs.domains.popgym.env:PopGym",
    ids={name: {"name": name.removeprefix("popgym/")} for name in ALL_IDS},
    presets={
        "popgym": Preset("POPGym, memory in 48 forms: --env.id CountRecallEasy", RECIPE, _CPU),
        "popgym/paper": Preset("POPGym, sizes of the paper's Tables 3 and 4", PAPER, _PAPER),
    },
    paper_size=_SIZE,
)
