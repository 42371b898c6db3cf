"""A domain is one module: what it must define, and that nothing else needs to know it."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium as gym
import pytest

import amago
from amago.cli.train import train_options
from amago.config import dotted
from amago.envs import catalogue, domains
from amago.envs.catalogue import DOMAINS, ENTRY_POINTS, PRESETS, TASKS, full_id, preset
from amago.presets.sizes import SIZES

FOLDER = Path(domains.__file__).parent
A_NEW_DOMAIN = """
from amago.envs.domain import Domain
from amago.envs.domains.wind import Wind
from amago.presets.base import SMALL, Preset

class Storm(Wind):
    pass

DOMAIN = Domain(
    make=Storm,
    ids={"amago/Storm-v0": {"horizon": 9}},
    presets={"storm": Preset("More wind", SMALL, {"env.id": "amago/Storm-v0"})},
)
"""


def test_every_module_of_the_folder_is_a_domain() -> None:
    modules = [path for path in FOLDER.iterdir() if path.name not in ("__init__.py", "__pycache__")]
    assert len(modules) == len(DOMAINS) == 13
    names = [name for domain in DOMAINS for name in (*domain.presets, *domain.ids)]
    assert len(names) == len(set(names)) == len(PRESETS) + len(TASKS) + len(ENTRY_POINTS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_trains_on_an_environment_of_its_own_domain(name: str) -> None:
    (domain,) = [domain for domain in DOMAINS if name in domain.presets]
    used = {env_id.partition("?")[0] for env_id in preset(name).env.ids or (preset(name).env.id,)}
    assert used <= set(domain.ids) or not domain.ids  # a domain without ids takes any
    assert PRESETS[name].summary and "\n" not in PRESETS[name].summary


def test_a_new_module_is_a_new_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "storm.py").write_text(A_NEW_DOMAIN)
    monkeypatch.setattr(domains, "__path__", [*domains.__path__, str(tmp_path)])
    try:
        found = catalogue._discover()
    finally:
        sys.modules.pop("amago.envs.domains.storm", None)
    (new,) = [domain for domain in found if "storm" in domain.presets]
    assert len(found) == len(DOMAINS) + 1 and "amago/Storm-v0" in new.ids
    assert new.presets["storm"].config.env.id == "amago/Storm-v0"


def test_every_id_is_registered_with_gymnasium() -> None:
    import amago.envs.registry  # noqa: F401

    assert {*TASKS, *ENTRY_POINTS} <= set(gym.registry)


def test_a_bare_name_stands_for_the_full_id() -> None:
    assert full_id("RepeatFirstEasy") == full_id("popgym/RepeatFirstEasy")
    assert full_id("CartPole-v1") == "CartPole-v1"


@pytest.mark.parametrize("size", SIZES)
def test_a_size_sets_all_widths_and_nothing_else(size: str) -> None:
    before, after = dotted(preset("crafter")), dotted(preset("crafter", size))
    wanted = SIZES[size].settings()
    assert {name: after[name] for name in wanted} == wanted
    assert {name for name in before if before[name] != after[name]} <= set(wanted)


@pytest.mark.parametrize(
    ("name", "like"), [("t-maze-1000", "t-maze/paper"), ("wind", "wind/paper")]
)
def test_the_papers_size_is_that_of_the_domains_column_in_table_3(name: str, like: str) -> None:
    widths = SIZES["tiny"].settings()
    ours, papers = dotted(preset(name, "paper")), dotted(preset(like))
    assert {key: ours[key] for key in widths} == {key: papers[key] for key in widths}


def test_flags_for_single_widths_override_the_size() -> None:
    config = train_options("wind", ["--encoder.hidden", "7", "--size", "tiny"]).config
    assert config.encoder.hidden == (7,) and config.transformer.model_dim == 16
    assert train_options("wind", ["--size=medium"]).config == preset("wind", "medium")


def test_a_size_that_nobody_knows_is_an_error_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="tiny, small, medium, paper"):
        preset("wind", "huge")
    with pytest.raises(ValueError, match="the paper has no networks for this domain"):
        preset("bit-recall", "paper")


def test_override_sets_one_argument_of_the_environment_and_keeps_the_others() -> None:
    config = amago.override(preset("maze-runner"), {"env.kwargs.max-goals": 1})
    assert config.env.kwargs == {"size": 15, "horizon": 100, "max_goals": 1}
    assert preset("maze-runner").env.kwargs == {"size": 15, "horizon": 100}


def test_an_unknown_setting_names_the_closest() -> None:
    with pytest.raises(ValueError, match=r"did you mean optim\.learning_rate"):
        amago.override(preset("wind"), {"optim.learning-rat": 1.0})
