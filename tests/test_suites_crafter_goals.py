"""Crafter's goals and instructions: tokens, text, and what is asked for how often."""

from __future__ import annotations

from collections import Counter
from math import isqrt

import numpy as np
import pytest

from amago.envs.domains.crafter.goals import (
    _ACHIEVEMENTS,
    COORDINATES,
    EXPANDED_GOALS,
    GOALS,
    VOCABULARY,
    achieved_goals,
    goal,
)
from amago.envs.domains.crafter.instructions import (
    _TECH_TREE,
    _draw_goal,
    _draw_travel,
    _farthest_within,
    draw_instruction,
    draw_tech_tree,
    tech_tree,
)
from amago.envs.domains.crafter.spec import goal_spec

SPEC = goal_spec(expanded=True)
NOTHING = dict.fromkeys(_ACHIEVEMENTS, 0)


def words(tokens) -> str:
    return " ".join(VOCABULARY[token] for token in tokens if token)


def test_goals_are_three_words_of_a_closed_vocabulary():
    assert len(GOALS) == 22 + 13 * 13 and len(EXPANDED_GOALS) == len(GOALS) + 13 * 13 + 2
    assert VOCABULARY[0] == "" and len(set(VOCABULARY)) == len(VOCABULARY) < 256
    used = {token for tokens in EXPANDED_GOALS for token in tokens}
    assert used == set(range(len(VOCABULARY)))
    assert words(goal("make", "wood", "pickaxe")) == "make wood pickaxe"
    assert goal("collect", "coal")[2] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("collect sapling, place plant x2, eat cow",
         ["collect sapling", "place plant", "place plant", "eat cow"]),
        ("travel to (10, 10)", ["travel 10 10"]),
        ("build at (30, 30)", ["place 30 30"]),
        ("wake up, near diamond, make iron sword", ["wake up", "near diamond", "make iron sword"]),
        ("travel to (60, 0) x3, place stone", ["travel 60 0"] * 3 + ["place stone"]),
    ],
)  # fmt: skip
def test_text_reads_as_tokens_and_is_written_again(text, expected):
    assert [words(tokens) for tokens in SPEC.read(text)] == expected
    assert SPEC.write(SPEC.read(text)) == text


def test_every_goal_survives_the_trip_through_text_alone_and_among_others():
    generator = np.random.default_rng(0)
    everything = sorted(EXPANDED_GOALS)
    for tokens in everything:
        assert SPEC.read(SPEC.write([tokens])).tolist() == [list(tokens)]
    for _ in range(300):
        length = int(generator.integers(1, 6))
        chosen = [everything[i] for i in generator.integers(0, len(everything), length)]
        chosen = [item for item in chosen for _ in range(int(generator.integers(1, 3)))]
        assert SPEC.read(SPEC.write(chosen)).tolist() == [list(tokens) for tokens in chosen]


def test_reading_forgives_spelling_out_and_spaces_but_not_unknown_goals():
    assert (
        SPEC.read("  Travel 10 10 ,EAT  cow x 2").tolist()
        == SPEC.read("travel to (10, 10), eat cow x2").tolist()
    )
    with pytest.raises(ValueError, match="did you mean collect wood"):
        SPEC.read("collect wod")
    with pytest.raises(ValueError, match="multiples of 5"):
        SPEC.read("travel to (11, 10)")
    for empty in ("", "eat cow,, wake up"):
        with pytest.raises(ValueError, match="separated by commas"):
            SPEC.read(empty)
    for bad in ("collect", "cow eat", "wood collect pickaxe", "make wood"):
        with pytest.raises(ValueError, match="Crafter has no goal"):
            SPEC.read(bad)


def test_travel_goals_are_reached_within_two_steps_everywhere_on_the_map():
    for x in range(64):
        for y in range(64):
            near = {
                f"travel {gx} {gy}"
                for gx in COORDINATES
                for gy in COORDINATES
                if abs(gx - x) + abs(gy - y) <= 2
            }
            found = achieved_goals(NOTHING, NOTHING, (x, y), (0, 1))
            assert {words(tokens) for tokens in found} == near and len(found) == len(near)


def test_a_step_lists_everything_that_it_achieved_and_nothing_older():
    before = {**NOTHING, "collect_wood": 3, "place_stone": 1}
    after = {**before, "place_stone": 2, "wake_up": 1}
    found = achieved_goals(before, after, (30, 29), (0, 1), {"iron", "grass"})
    assert sorted(map(words, found)) == [
        "near iron", "place 30 30", "place stone", "travel 30 30", "wake up",
    ]  # fmt: skip
    assert sorted(map(words, achieved_goals(before, after, (30, 29), (0, 1)))) == [
        "place stone", "travel 30 30", "wake up",
    ]  # fmt: skip
    elsewhere = achieved_goals(before, after, (30, 29), (1, 0), set())
    assert "place 30 30" not in map(words, elsewhere)
    assert len(achieved_goals(after, after, (33, 33), (0, 1), set())) == 0


def expected_shares() -> dict[str, float]:
    """Probabilities of single goals, worked out by hand."""
    shares = {"collect " + k: 0.3 * v for k, v in
              {"sapling": .2, "wood": .2, "stone": .18, "drink": .17, "coal": .1, "iron": .1,
               "diamond": .05}.items()}  # fmt: skip
    shares |= {"defeat zombie": 0.06, "defeat skeleton": 0.04, "eat cow": 0.07, "eat plant": 0.03}
    for material, weight in (("wood", 0.6), ("stone", 0.3), ("iron", 0.1)):
        for tool in ("pickaxe", "sword"):
            shares[f"make {material} {tool}"] = 0.15 * weight / 2
    shares |= {
        "place table": 0.06,
        "place stone": 0.045,
        "place plant": 0.03,
        "place furnace": 0.015,
    }
    return shares | {"travel": 0.2}


def test_goals_are_drawn_with_the_weights_of_the_domain():
    generator = np.random.default_rng(0)
    count = 10_000
    drawn = Counter(words(_draw_goal(generator)) for _ in range(count))
    shares = expected_shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    drawn["travel"] = sum(drawn.pop(name) for name in list(drawn) if name.startswith("travel "))
    assert set(drawn) == set(shares) and "wake up" not in drawn
    # Pearson's statistic with 21 degrees of freedom exceeds 46.8 once in a thousand.
    statistic = sum((drawn[k] - count * p) ** 2 / (count * p) for k, p in shares.items())
    assert len(shares) == 22 and statistic < 46.8


def test_travel_goals_are_the_farthest_within_a_radius_that_is_more_often_short():
    for radius in range(3, 45):
        inside = {
            (x, y): (x - 32) ** 2 + (y - 32) ** 2
            for x in COORDINATES for y in COORDINATES
            if isqrt((x - 32) ** 2 + (y - 32) ** 2 - 1) < radius
        }  # fmt: skip
        farthest = {at for at, square in inside.items() if square == max(inside.values())}
        assert set(_farthest_within(radius)) == farthest
    assert _farthest_within(1) == _farthest_within(2) == _farthest_within(3) == ((30, 30),)
    weights = {radius: (45 - radius) / 990 for radius in range(1, 45)}
    share = sum(w for radius, w in weights.items() if _farthest_within(radius) == ((30, 30),))
    generator = np.random.default_rng(1)
    drawn = [words(_draw_travel(generator)) for _ in range(4000)]
    assert drawn.count("travel 30 30") / 4000 == pytest.approx(share, abs=0.025)


def test_instructions_have_one_to_five_goals_and_follow_the_generator():
    lengths = Counter(len(draw_instruction(np.random.default_rng(s))) for s in range(1000))
    assert set(lengths) == {1, 2, 3, 4, 5} and min(lengths.values()) > 150
    same = [draw_instruction(np.random.default_rng(7)).tolist() for _ in range(2)]
    assert same[0] == same[1]


def test_tech_tree_instructions_are_ordered_parts_up_to_the_frontier():
    generator = np.random.default_rng(0)
    order = {tokens: index for index, tokens in enumerate(_TECH_TREE)}
    ordered = 0
    for _ in range(600):
        drawn = [tuple(int(t) for t in tokens) for tokens in draw_tech_tree(generator, 6)]
        indices = [order.get(tokens, 99) for tokens in drawn]
        ordered += max(indices) <= 6 and indices == sorted(set(indices))
    # Half from the tree; of the others only few happen to look like it.
    assert 300 * 0.85 < ordered < 300 * 1.35
    alone = [draw_tech_tree(np.random.default_rng(s), -1).tolist() for s in range(50)]
    assert len({str(item) for item in alone}) > 30
    assert len(tech_tree()) == 13 and words(tech_tree()[-1]) == "collect diamond"
    names = [words(tokens) for tokens in tech_tree(expanded=True)]
    assert names.index("near iron") == names.index("collect iron") - 1
    assert names[-2:] == ["near diamond", "collect diamond"] and len(names) == 15
