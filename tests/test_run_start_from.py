"""A run that begins with the weights of another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from test_run_helpers import command, evidence, flags, in_another_process, no_plots, tiny

from amago import api
from amago.config import Config, override
from amago.envs.catalogue import preset
from amago.saved import checkpoint, kept
from amago.training.start import create

SHORT = {"env.kwargs": {"corridor": 4}, "env.ids": (), "run.epochs": 2, "run.keep_interval": 1}


def _config(**changes: object) -> Config:
    return override(tiny("t-maze", SHORT), changes)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "plot_run", lambda *_, **__: None)
        api.train(_config(**{"run.save_interval": 1}), 0, folder, preset="t-maze")
    return folder


def _longer(start_from: Path) -> Config:
    """More context than the weights were trained with."""
    return _config(**{"run.start_from": str(start_from), "env.kwargs": {"corridor": 9}})


@pytest.mark.parametrize("which", ["the run", "one checkpoint"])
def test_a_run_begins_with_the_weights_of_another_and_nothing_else_of_it(
    trained: Path, tmp_path: Path, which: str
) -> None:
    latest = kept.find(trained / "checkpoints")
    first = kept.find(trained / "checkpoints", "1")
    assert latest is not None and first is not None and latest != first
    source, path = (trained, latest) if which == "the run" else (first, first)
    run = create(tmp_path / "new", _longer(source), seed=1)
    try:
        weights = load_file(path / checkpoint.MODEL)
        ours = run.agent.state_dict()
        assert set(ours) == set(weights)
        assert all(torch.equal(ours[name], weights[name]) for name in weights)
        assert not run.learner.optimizer.state
        assert (run.epoch, run.env_steps, run.learner.updates, len(run.store)) == (0, 0, 0, 0)
    finally:
        run.close()


def _resume(folder: Path) -> None:
    no_plots()
    api.resume(folder)


def test_a_run_with_a_checkpoint_of_its_own_no_longer_needs_the_other(
    trained: Path, tmp_path: Path
) -> None:
    """Neither a finished run nor a resumed one starts again with the other's weights."""
    source = tmp_path / "source"
    source.symlink_to(trained)
    folder = tmp_path / "new"
    create(folder, _longer(source), seed=1).close()
    assert in_another_process(_resume, folder) == 0
    source.unlink()
    before = evidence(folder)
    assert in_another_process(_resume, folder) == 0
    assert evidence(folder) == before


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"run.start_from": "nowhere"}, ["--run.start-from", "nowhere", "is not a run"]),
        ({"transformer.model_dim": 32}, ["does not fit this agent", "sizes of networks"]),
        ({"agent.discounts": (0.3, 0.4)}, ["discounts", "0.3", "--agent.discounts"]),
    ],
    ids=["no such run", "another size", "other discounts"],
)
def test_what_cannot_be_started_from_is_refused_and_leaves_no_folder(
    trained: Path,
    tmp_path: Path,
    changes: dict[str, object],
    expected: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = override(_longer(trained), changes)
    folder = tmp_path / "new"
    arguments = ["train", "t-maze", "--run-dir", folder, *flags(config, preset("t-maze"))]
    code, _, err = command(capsys, *arguments)
    assert code == 2
    assert [part for part in expected if part not in err] == [], err
    assert not folder.exists()
