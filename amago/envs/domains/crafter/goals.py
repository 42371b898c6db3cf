"""Crafter's goals: which there are, which a step achieved, and how people write them.

A goal is three tokens of a closed vocabulary, padded with 0, the empty word: make wood pickaxe,
collect coal, travel 10 10. "Expanded" Crafter adds place x y, for stone placed at a location,
and near iron and near diamond (paper appendix C.5).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from amago.checks import did_you_mean

Goal = tuple[int, int, int]
Tokens = NDArray[np.uint8]

_ACHIEVEMENTS = (
    "collect_coal", "collect_diamond", "collect_drink", "collect_iron", "collect_sapling",
    "collect_stone", "collect_wood", "defeat_skeleton", "defeat_zombie", "eat_cow", "eat_plant",
    "make_iron_pickaxe", "make_iron_sword", "make_stone_pickaxe", "make_stone_sword",
    "make_wood_pickaxe", "make_wood_sword", "place_furnace", "place_plant", "place_stone",
    "place_table", "wake_up",
)  # fmt: skip
"""As Crafter names them."""
TABLE_GOALS = (
    "collect sapling", "collect wood", "collect drink", "place plant", "wake up", "place table",
    "make wood sword", "eat cow", "defeat zombie", "make wood pickaxe", "collect stone",
    "place furnace", "make stone pickaxe", "make stone sword", "collect coal", "defeat skeleton",
    "collect iron",
)  # fmt: skip
"""The single-goal instructions of the paper's Table 1, in its order, after the one that Table 2
adds."""
COORDINATES = tuple(range(0, 61, 5))
"""Where travel and place goals are, along either axis."""
REACH = 2
"""Steps from which a travel goal counts as reached, and iron and diamond as near."""
_RARE = ("iron", "diamond")

_WORDS = {word for name in _ACHIEVEMENTS for word in name.split("_")} | {"travel", "near"}
VOCABULARY = ("", *sorted(_WORDS), *map(str, COORDINATES))
_TOKENS = {word: token for token, word in enumerate(VOCABULARY)}
GOAL_SIZE = 3


def goal(*words: str | int) -> Goal:
    """The tokens of a goal that is given by its words."""
    tokens = [_TOKENS[str(word)] for word in words]
    first, second, third = tokens + [0] * (GOAL_SIZE - len(tokens))
    return first, second, third


_ACHIEVEMENT_GOALS = {name: goal(*name.split("_")) for name in _ACHIEVEMENTS}
TRAVEL_GOALS = {(x, y): goal("travel", x, y) for x in COORDINATES for y in COORDINATES}
_PLACE_GOALS = {(x, y): goal("place", x, y) for x in COORDINATES for y in COORDINATES}
NEAR_GOALS = {material: goal("near", material) for material in _RARE}
GOALS = frozenset((*_ACHIEVEMENT_GOALS.values(), *TRAVEL_GOALS.values()))
EXPANDED_GOALS = GOALS | {*_PLACE_GOALS.values(), *NEAR_GOALS.values()}


def achieved_goals(
    before: Mapping[str, int],
    after: Mapping[str, int],
    position: tuple[int, int],
    facing: tuple[int, int],
    near: Collection[str] | None = None,
) -> Tokens:
    """All goals that a step achieved, [n, 3].

    `before` and `after` count every achievement up to and including the step; the agent now
    stands at `position` and looks `facing`. With the materials that are `near`, the goals of
    Expanded Crafter are among them; without, they are not.
    """
    found = []
    if before != after:
        for name, count in after.items():
            if count > before[name]:
                found.append(_ACHIEVEMENT_GOALS[name])
    x, y = (round(value / 5) * 5 for value in position)
    if abs(x - position[0]) + abs(y - position[1]) <= REACH and (x, y) in TRAVEL_GOALS:
        found.append(TRAVEL_GOALS[x, y])
    if near is not None:
        target = (position[0] + facing[0], position[1] + facing[1])
        if after["place_stone"] > before["place_stone"] and target in _PLACE_GOALS:
            found.append(_PLACE_GOALS[target])
        found += [NEAR_GOALS[material] for material in _RARE if material in near]
    return np.array(found, np.uint8).reshape(-1, GOAL_SIZE)


def write_goal(tokens: Sequence[int]) -> str:
    """A goal in words: place plant, travel to (10, 10)."""
    words = [VOCABULARY[token] for token in tokens if token]
    if words[-1].isdigit():
        verb = {"travel": "travel to", "place": "build at"}[words[0]]
        return f"{verb} ({words[1]}, {words[2]})"
    return " ".join(words)


def read_goal(text: str) -> Goal:
    """The inverse of `write_goal`; forgives capitals and missing words."""
    text = text.lower()
    location = re.fullmatch(
        r"(travel|build|place)\s*(?:to|at)?\s*\(?\s*(\d+)[\s,]+(\d+)\s*\)?", text
    )
    if location is not None:
        at = int(location[2]), int(location[3])
        goals = TRAVEL_GOALS if location[1] == "travel" else _PLACE_GOALS
        if at not in goals:
            raise ValueError(
                f"expected both coordinates of {text!r} to be multiples of 5 from 0 to 60, got {at}"
            )
        return goals[at]
    words = text.split()
    if 0 < len(words) <= GOAL_SIZE and all(word in _TOKENS for word in words):
        found = goal(*words)
        if found in EXPANDED_GOALS:
            return found
    known = [name.replace("_", " ") for name in _ACHIEVEMENTS] + ["travel to (10, 10)", "near iron"]
    raise ValueError(
        f"Crafter has no goal {text!r}; {did_you_mean(text, known)}Goals are {', '.join(known)}, "
        "build at (30, 30), near diamond, separated by commas, with x2 for twice"
    )
