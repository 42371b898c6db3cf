"""One recipe: in which learning settings the presets of the CPU still differ from it."""

from __future__ import annotations

import pytest

from amago.config import Config, dotted
from amago.envs.catalogue import PRESETS
from amago.presets.base import RECIPE

_LEARNING = ("agent", "optim", "exploration", "heads", "terms", "memory", "transformer", "gru")
_OF_THE_DOMAIN = {
    "agent.reward_scale", "exploration.anneal_steps", "heads.hidden", "transformer.model_dim",
    "transformer.num_layers", "transformer.num_heads", "gru.hidden",
}  # fmt: skip
"""Widths and the scale of rewards belong to a size or a domain."""

_ON_THE_RECIPE = {
    "gym": set(),
    "dark-key-to-door": set(),
    "popgym": set(),
    "maze-runner": set(),
    "bit-recall": set(),
    "masked-recall": set(),
    "pixel-recall": set(),
    # The decision of a T-Maze is its last step: noise falls there, and it lasts.
    "t-maze": {"exploration.kind", "exploration.anneal_fraction", "agent.greedy"},
    # Rewards are so rare that a batch with one must be allowed to count more than others.
    "wind": {"agent.target_critics", "optim.grad_clip"},
    # Rewards of two sizes need classification; only the next reward counts.
    "multi-task": {"heads.critic", "agent.acting_discount", "terms.cloning.weight"},
}


def _differing(config: Config) -> set[str]:
    """The learning settings in which a preset is not the recipe."""
    ours, recipe = dotted(config), dotted(RECIPE)
    return {
        name
        for name, value in ours.items()
        if name.split(".")[0] in _LEARNING and name not in _OF_THE_DOMAIN and value != recipe[name]
    }


@pytest.mark.parametrize("name", _ON_THE_RECIPE)
def test_presets_on_the_recipe_differ_from_it_in_named_settings_alone(name: str) -> None:
    assert _differing(PRESETS[name].config) == _ON_THE_RECIPE[name]


def test_the_presets_that_are_not_on_the_recipe_yet_are_known() -> None:
    cpu = {name for name in PRESETS if not name.endswith("/paper")}
    assert cpu - set(_ON_THE_RECIPE) == {
        "crafter", "half-cheetah-velocity", "metaworld", "package-delivery",
        "t-maze-1000",
    }  # fmt: skip


def test_presets_of_the_paper_have_none_of_the_recipes_own_parts() -> None:
    paper = [preset.config for name, preset in PRESETS.items() if name.endswith("/paper")]
    assert len(paper) > 5
    for config in paper:
        assert config.optim.beta2 == 0.999
        assert not config.transformer.previous_row
        assert not config.heads.layer_norm
        assert config.replay.batch_rows is None
        assert config.agent.discounts != "horizon"
        assert config.agent.trace == 0.0
