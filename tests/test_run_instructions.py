"""Instruction domains through a whole run: training, ablations, relabeling shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_run_helpers import command, tiny

import amago
from amago.config import override
from amago.presets.ablations import ABLATIONS, ablate


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instructions") / "run"
    amago.train(tiny("package-delivery"), seed=3, run_dir=folder)
    return folder


def test_relabel_shows_a_trajectory_in_words_and_pictures(
    delivered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = command(capsys, "relabel", delivered, "--choices")
    assert code == 0 and "asked" in out and "happened" in out
    for name in ("relabel.png", "choices.png"):
        assert (delivered / name).read_bytes().startswith(b"\x89PNG")


def test_relabel_of_an_unknown_trajectory_says_which_there_are(
    delivered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, error = command(capsys, "relabel", delivered, "--trajectory", "99999")
    assert code == 2 and "no trajectory 99999" in error and "0 to" in error


def test_relabel_of_a_domain_without_goals_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    amago.train(tiny("t-maze"), seed=0, run_dir=tmp_path / "run")
    code, _, error = command(capsys, "relabel", tmp_path / "run")
    assert code == 2 and "no instructions" in error


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_ablation_makes_an_update(name: str, tmp_path: Path) -> None:
    config = ablate(tiny("package-delivery"), [name])
    config = override(config, {"run.epochs": 2, "run.updates_per_epoch": 1})
    result = amago.train(config, seed=0, run_dir=tmp_path / "run")
    assert result["episodes"] > 0
    line = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1]
    assert '"learner/skipped": 0' in line
    assert ("loss/world_model" in line) == (name == "world-model")
