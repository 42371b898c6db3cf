"""Each ablation changes what it names, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from amago.baselines.catalogue import METHODS
from amago.cli.train import train_options
from amago.config import Config, dotted, from_dict, to_dict
from amago.envs.catalogue import PRESETS, preset
from amago.presets.ablations import ABLATIONS, ablate
from amago.presets.sizes import SIZES

NAMED = {
    "no-relabeling": {"relabel.relabel": "none"},
    "relabel-all": {"relabel.relabel": "all"},
    "no-memory": {"memory": "feedforward"},
    "no-multi-gamma": {"agent.discounts": "single"},
    "no-filtered-bc": {"terms.cloning.weight": 0.0},
    "no-popart": {"heads.popart": False},
    "no-planning": {"instruction.hide_plan": True},
    "no-multi-goal": {"relabel.multi_goal": False, "env.kwargs": {"max_goals": 1}},
    "no-importance-sampling": {"relabel.importance_sampling": False},
    "gru": {"memory": "gru"},
    "pre-ln": {
        "transformer.activation": "relu",
        "transformer.extra_norms": False,
        "transformer.sigma_reparam": False,
    },
    "no-leaky-relu": {"transformer.activation": "relu", "heads.activation": "relu"},
    "no-extra-norms": {"transformer.extra_norms": False},
    "no-sigma-reparam": {"transformer.sigma_reparam": False},
    "naive": {
        "transformer.activation": "relu",
        "transformer.extra_norms": False,
        "transformer.sigma_reparam": False,
        "heads.activation": "relu",
        "agent.discounts": "single",
        "agent.acting_discount": 0.99,
        "heads.num_critics": 2,
    },
    "wide-gammas": {"agent.discounts": "wide"},
    "gcsl": {
        "relabel.relabel": "all",
        "terms.cloning.filter": "none",
        "terms.cloning.weight": 1.0,
        "terms.actor.weight": 0.0,
    },
    "world-model": {"terms.world_model.weight": 0.1},
    "no-world-model": {"terms.world_model.weight": 0.0},
    "critics-in-actor-loss": {"agent.critics_in_actor_loss": "trained"},
    "frozen-encoder-in-actor-loss": {"agent.encoder_in_actor_loss": "frozen"},
    "target-memory": {"agent.sequence_models": "target"},
    "separate-memory": {"agent.sequence_models": "separate"},
}


def test_every_ablation_is_tested() -> None:
    assert set(NAMED) == set(ABLATIONS)


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_changes_what_it_names_and_nothing_else(name: str) -> None:
    base = preset("package-delivery/paper")
    before, after = dotted(base), dotted(ablate(base, [name]))
    changed = {key: after[key] for key in after if after[key] != before[key]}
    wanted = {key: value for key, value in NAMED[name].items() if before[key] != value}
    assert changed == wanted


def test_ablations_add_up() -> None:
    config = ablate(preset("package-delivery"), ["no-memory", "no-relabeling"])
    assert (config.memory, config.relabel.relabel) == ("feedforward", "none")


def test_the_world_model_of_a_preset_can_be_left_out() -> None:
    assert preset("package-delivery").terms.world_model.weight > 0
    assert ablate(preset("package-delivery"), ["no-world-model"]).terms.world_model.weight == 0


@pytest.mark.parametrize("ablation", [["--ablate", "world-model"], ["--ablate=world-model"]])
def test_flags_take_back_what_an_ablation_changed(ablation: list[str]) -> None:
    assert train_options("wind", ablation).config.terms.world_model.weight == 0.1
    flags = [*ablation, "--terms.world-model.weight", "1"]
    assert train_options("wind", flags).config.terms.world_model.weight == 1.0


def test_every_ablation_of_a_list_is_applied() -> None:
    options = train_options(
        "maze-runner", ["--ablate", "no-memory", "no-multi-goal", "--seed", "3"]
    )
    config = options.config
    assert (config.memory, config.env.kwargs["max_goals"], options.seed) == ("feedforward", 1, 3)
    assert config.env.kwargs["size"] == 15


def test_an_unknown_ablation_names_the_closest() -> None:
    with pytest.raises(ValueError, match="no-memory"):
        ablate(preset("wind"), ["no-memry"])


def test_every_setting_is_varied_by_something_or_explained() -> None:
    """A setting that no preset, ablation, size or baseline varies and no page explains is a
    constant."""
    docs = Path(__file__).parents[1] / "docs"
    pages = "".join(page.read_text(encoding="utf-8") for page in docs.glob("*.md"))
    presets = [dotted(preset(name)) for name in PRESETS]
    varied = {key for ablation in ABLATIONS.values() for key in ablation.changes}
    varied |= {key for size in SIZES.values() for key in size.settings()}
    varied |= {key for method in METHODS.values() for key in method.changes}
    for name, value in dotted(Config()).items():
        known = name in varied or any(settings.get(name) != value for settings in presets)
        flag = f"--{name.replace('_', '-')}"
        assert known or flag in pages or f"`{name}`" in pages, f"{name} is a constant"


def test_files_may_name_a_former_setting_with_the_value_that_is_a_constant_now() -> None:
    values = to_dict(preset("wind"))
    values["run"]["tf32"], values["terms"]["cloning"]["samples"] = True, 1
    assert from_dict(values) == preset("wind")
    values["run"]["tf32"] = False
    with pytest.raises(ValueError, match=r"config\.run has settings .* not know: tf32"):
        from_dict(values)
