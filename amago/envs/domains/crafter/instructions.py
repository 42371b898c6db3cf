"""What Crafter is asked for: the weighted distribution over instructions, and the Tech-Tree."""

from __future__ import annotations

from functools import cache

import numpy as np

from amago.envs.domains.crafter.goals import (
    COORDINATES,
    NEAR_GOALS,
    TRAVEL_GOALS,
    Goal,
    Tokens,
    goal,
)

MAX_GOALS = 5
_CENTRE = 32
_FARTHEST = 44

_KINDS = {"collect": 0.30, "defeat": 0.10, "eat": 0.10, "make": 0.15, "place": 0.15, "travel": 0.20}
_OBJECTS = {
    "collect": {
        "sapling": 0.2, "wood": 0.2, "stone": 0.18, "drink": 0.17,
        "coal": 0.1, "iron": 0.1, "diamond": 0.05,
    },
    "defeat": {"zombie": 0.6, "skeleton": 0.4},
    "eat": {"cow": 0.7, "plant": 0.3},
    "make": {"wood": 0.6, "stone": 0.3, "iron": 0.1},
    "place": {"table": 0.4, "stone": 0.3, "plant": 0.2, "furnace": 0.1},
}  # fmt: skip
_TOOLS = ("pickaxe", "sword")

_TECH_TREE = tuple(
    goal(*name.split())
    for name in (
        "collect wood", "place table", "make wood pickaxe", "collect coal", "make wood sword",
        "collect stone", "make stone pickaxe", "make stone sword", "collect iron",
        "place furnace", "make iron pickaxe", "make iron sword", "collect diamond",
    )
)  # fmt: skip
"""Crafter's progression, from the first goal to the most advanced."""


@cache
def tech_tree(expanded: bool = False) -> tuple[Goal, ...]:
    """The progression; in Expanded Crafter being near iron and diamond comes before them."""
    if not expanded:
        return _TECH_TREE
    before = {goal("collect", material): near for material, near in NEAR_GOALS.items()}
    return tuple(
        item
        for step in _TECH_TREE
        for item in ((before[step], step) if step in before else (step,))
    )


def draw_instruction(generator: np.random.Generator, max_goals: int = MAX_GOALS) -> Tokens:
    """One to `max_goals` goals [k, 3], drawn independently of each other."""
    length = int(generator.integers(1, max_goals + 1))
    return np.array([_draw_goal(generator) for _ in range(length)], np.uint8)


def draw_tech_tree(
    generator: np.random.Generator,
    frontier: int,
    *,
    expanded: bool = False,
    max_goals: int = MAX_GOALS,
) -> Tokens:
    """Half of the time, an ordered part of the progression up to index `frontier`.

    `frontier` is the most advanced goal that has ever been achieved, -1 while there is none:
    then, and the other half of the time, the weighted distribution.
    """
    from_tree = generator.random() < 0.5
    if not from_tree or frontier < 0:
        return draw_instruction(generator, max_goals)
    length = min(int(generator.integers(1, max_goals + 1)), frontier + 1)
    chosen = np.sort(generator.choice(frontier + 1, length, replace=False))
    return np.array([tech_tree(expanded)[index] for index in chosen], np.uint8)


def _draw_goal(generator: np.random.Generator) -> Goal:
    """One goal by the weights. "Wake up" is never drawn: it is learned by relabeling alone."""
    kind = _choice(generator, _KINDS)
    if kind == "travel":
        return _draw_travel(generator)
    thing = _choice(generator, _OBJECTS[kind])
    if kind == "make":
        return goal(kind, thing, _TOOLS[int(generator.integers(len(_TOOLS)))])
    return goal(kind, thing)


def _draw_travel(generator: np.random.Generator) -> Goal:
    """A radius, the likelier the smaller, and the farthest location from the centre within it."""
    weights = _FARTHEST + 1.0 - np.arange(1, _FARTHEST + 1)
    radius = 1 + int(generator.choice(_FARTHEST, p=weights / weights.sum()))
    locations = _farthest_within(radius)
    return TRAVEL_GOALS[locations[int(generator.integers(len(locations)))]]


@cache
def _farthest_within(radius: float) -> tuple[tuple[int, int], ...]:
    """The locations farthest from the centre within a radius; the nearest, if none is within."""
    squares = {
        (x, y): (x - _CENTRE) ** 2 + (y - _CENTRE) ** 2 for x in COORDINATES for y in COORDINATES
    }
    within = [square for square in squares.values() if square <= radius**2]
    wanted = max(within) if within else min(squares.values())
    return tuple(location for location, square in squares.items() if square == wanted)


def _choice(generator: np.random.Generator, weights: dict[str, float]) -> str:
    names = list(weights)
    return names[int(generator.choice(len(names), p=np.array(list(weights.values()))))]
