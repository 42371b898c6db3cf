"""A checkpoint whose checksums fit may still be a stranger's: what it holds is checked, too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_run_helpers import command, sign, tiny
from test_trust_checkpoints import listing

from amago import api

Tensors = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    drawn, api.plot_run = api.plot_run, lambda *_, **__: None  # type: ignore[assignment]
    api.train(tiny("wind", {"env.kwargs": {"horizon": 5}}), 0, folder, preset="wind")
    api.plot_run = drawn
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    return Path(shutil.copytree(finished, tmp_path / "run"))


def _moment(name: str, value: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], Any]:
    return lambda tensors: tensors.__setitem__(name, value(tensors[name]))


def _nan(tensors: Tensors) -> None:
    name = next(name for name, value in tensors.items() if value.numel() > 1)
    tensors[name] = torch.full_like(tensors[name], float("nan"))


TENSORS: dict[str, tuple[str, Callable[[Tensors], Any], str]] = {
    "weights that are no numbers": ("model", _nan, "not numbers"),
    "moments that are no numbers": ("optimizer", _nan, "not numbers"),
    "half of the moments": ("optimizer", lambda t: t.pop("0.exp_avg"), "does not fit"),
    "moments without steps": ("optimizer", lambda t: t.pop("0.step"), "does not fit"),
    "moments of another shape": (
        "optimizer", _moment("1.exp_avg", lambda _: torch.zeros(3)), "does not fit",
    ),
    "whole numbers as moments": ("optimizer", _moment("1.exp_avg", torch.Tensor.long), "not fit"),
    "moments of nothing": (
        "optimizer", lambda t: t.__setitem__("9999.step", torch.zeros(())), "no parameter",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_that_no_training_makes_are_refused_before_anything_is_changed(
    kind: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, change, expected = TENSORS[kind]
    path = run / "checkpoints" / "000002"
    tensors = load_file(path / f"{name}.safetensors")
    change(tensors)
    save_file(tensors, path / f"{name}.safetensors")
    sign(path)
    before = listing(run)
    code, _, err = command(capsys, "resume", run, "--epochs", "3")
    assert code == 2 and expected in err and "unexpected" not in err, err
    assert listing(run) == before
    if "not numbers" in expected:
        code, out, _ = command(capsys, "verify", run)
        assert code == 1 and "PROBLEM  weights" in out and expected in out


COUNTERS: dict[str, dict[str, Any]] = {
    "another epoch": {"epoch": 1},
    "an epoch without end": {"epoch": 10**30},
    "updates below zero": {"updates": -5},
    "steps that no counter holds": {"env_steps": 10**30},
    "text as rollouts": {"episodes": ["x", "x", "x"]},
    "halves of rollouts": {"episodes": [1.5, 1.5, 1.5]},
    "rollouts that no counter holds": {"episodes": [10**30] * 3},
    "a window that ends before it begins": {"window": [5, 0]},
    "truth as a window": {"window": [True, True]},
    "bytes that no file has": {"offsets": [10**17, 10**17]},
    "a best return that is no number": {"best_return": float("nan")},
    "exploration below zero": {"exploration_steps": -10},
    "exploration that is no number": {"exploration_steps": float("nan")},
    "endless seconds": {"seconds": float("inf")},
    "text as a count": {"collected": "x"},
}


@pytest.mark.parametrize("kind", COUNTERS)
def test_counters_that_no_training_makes_are_refused_and_found(
    kind: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "checkpoints" / "000002"
    state = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps({**state, **COUNTERS[kind]}))
    sign(path)
    before = listing(run)
    code, _, err = command(capsys, "resume", run, "--epochs", "3")
    assert code == 2 and f"state.json is damaged ({next(iter(COUNTERS[kind]))} is" in err, err
    assert listing(run) == before
    code, out, _ = command(capsys, "verify", run)
    assert code == 1 and "PROBLEM  counters" in out, out


def test_a_window_of_any_size_is_found_at_once(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "checkpoints" / "000002"
    state = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps({**state, "window": [0, 10**15]}))
    sign(path)
    code, out, _ = command(capsys, "verify", run)
    assert code == 1 and "trajectories of the checkpoint's window are missing" in out


@pytest.mark.parametrize("text", ["[]", "{}", '{"env_steps": 1}', "[" * 9000, "nothing"])
def test_a_result_of_any_kind_is_a_finding(
    text: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "result.json").write_text(text)
    code, out, err = command(capsys, "verify", run)
    assert code == 1 and "PROBLEM  result" in out and "unexpected" not in err
