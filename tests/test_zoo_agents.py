"""Every agent of the zoo still scores what its card says."""

from __future__ import annotations

import math

import pytest

import amago
from amago.saved.source import zoo_names, zoo_path
from amago.zoo.cards import card_of, card_text, reference

EPISODES = 96
DEVIATIONS = 3.0
"""Tolerance: standard errors of the difference between the card's mean return and ours."""


@pytest.mark.parametrize("name", zoo_names())
def test_an_agent_of_the_zoo_holds_the_score_of_its_card(name: str) -> None:
    card = card_of(name)
    policy = amago.load(f"zoo:{name}")
    played = amago.evaluate(policy, card.config.env, EPISODES, seed=2024, num_lanes=32)
    error = math.hypot(
        card.result["return_std"] / math.sqrt(card.result["episodes"]),
        played["return_std"] / math.sqrt(EPISODES),
    )
    assert played["return_mean"] == pytest.approx(
        card.result["return_mean"], abs=DEVIATIONS * error
    )
    random = reference(card, "random")
    assert random is not None
    assert played["return_mean"] > random["return_mean"] + DEVIATIONS * error


@pytest.mark.parametrize("name", zoo_names())
def test_a_model_card_says_what_it_must_and_the_file_is_small(name: str) -> None:
    text = card_text(name, card_of(name))
    for part in ("command", "amago train", "seeds", "random play", "curve", "limits"):
        assert part in text
    assert zoo_path(name).stat().st_size < 1_500_000


def test_the_zoo_has_the_agent_that_is_watched_by_default() -> None:
    assert "dark-key-to-door" in zoo_names()
