"""The environments of the optional suites, known by name without importing any of them."""

from __future__ import annotations

from typing import Any

LEVELS = ("Easy", "Medium", "Hard")
POPGYM_FAMILIES = (
    "Autoencode", "RepeatPrevious", "RepeatFirst", "CountRecall", "PositionOnlyCartPole",
    "PositionOnlyPendulum", "VelocityOnlyCartPole", "NoisyPositionOnlyCartPole",
    "NoisyPositionOnlyPendulum", "MultiarmedBandit", "HigherLower", "Battleship",
    "Concentration", "MineSweeper",
)  # fmt: skip
POPGYM_NAVIGATION = ("LabyrinthEscape", "LabyrinthExplore")

POPGYM_IDS = tuple(f"popgym/{family}{level}" for family in POPGYM_FAMILIES for level in LEVELS)
"""The 42 ids of the benchmark without navigation."""
POPGYM_PAPER_IDS = tuple(name for name in POPGYM_IDS if "VelocityOnly" not in name)
"""Most likely the 39 environments of the paper's Figure 3."""
POPGYM_ALL_IDS = POPGYM_IDS + tuple(
    f"popgym/{family}{level}" for family in POPGYM_NAVIGATION for level in LEVELS
)

ENTRY_POINTS: dict[str, tuple[str, dict[str, Any]]] = {
    name: ("amago.envs.domains.popgym:PopGym", {"name": name.removeprefix("popgym/")})
    for name in POPGYM_ALL_IDS
} | {
    "amago/HalfCheetahVelocity-v0": (
        "amago.envs.domains.half_cheetah_velocity:HalfCheetahVelocity",
        {},
    ),
    "amago/MetaWorldML1-v0": ("amago.envs.domains.metaworld:MetaWorldML1", {}),
    "amago/Crafter-v0": ("amago.envs.domains.crafter.env:Crafter", {}),
}
"""Gymnasium id → where its class is, and the arguments that the id fixes."""


def full_id(env_id: str) -> str:
    """The Gymnasium id that a POPGym environment's bare name stands for; others unchanged."""
    name = f"popgym/{env_id}"
    return name if name in ENTRY_POINTS else env_id
