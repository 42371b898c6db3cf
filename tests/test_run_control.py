"""An agent without memory beside a run: trained on request, taken along when the run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_run_helpers import command, flags, lines, tiny

import amago
from amago import api
from amago.training.header import go_on_command
from amago.training.hooks import Hooks


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)


def _result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_evaluations_and_a_longer_run_keep_their_control(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "run"
    given = flags(tiny("t-maze", {"run.report": False}), amago.preset("t-maze"))
    code, out, _ = command(capsys, "train", "t-maze", "--run-dir", folder, "--control", *given)
    assert code == 0 and "no memory" in out
    code, out, _ = command(capsys, "eval", folder, "--episodes", 3)
    assert code == 0 and "no memory" in out and max(map(len, out.splitlines())) <= 80
    code, out, _ = command(capsys, "resume", folder, "--epochs", "+1")
    assert code == 0 and "no memory" in out
    assert _result(folder)["epochs"] == _result(folder / "control")["epochs"] == 3
    beside = _result(folder)["reference_scores"]["no memory"]["return_mean"]
    assert beside == _result(folder / "control")["return_mean"]
    assert len(lines(folder / "control")) == 3


def test_a_finished_run_gets_a_control_from_python(tmp_path) -> None:
    run = amago.train(tiny("wind", {"run.report": False}), 0, tmp_path / "run", progress=False)
    assert "no memory" not in run.result["reference_scores"]
    tested = run.result["return_mean"]
    run = run.resume(set={"run.control": True}, progress=False)
    control = amago.Run(run.run_dir / "control")
    assert run.result["return_mean"] == tested
    assert control.config.memory == "feedforward" and control.seed == run.seed
    assert (
        run.result["reference_scores"]["no memory"]["return_mean"] == control.result["return_mean"]
    )
    # Same worlds: random play earned the same in both.
    assert run.result["random_return_mean"] == control.result["random_return_mean"]


def test_a_control_is_trained_as_long_as_a_run_that_ended_early(tmp_path) -> None:
    config = tiny("wind", {"run.report": False, "run.epochs": 4, "run.control": True})
    run = amago.train(
        config, 0, tmp_path / "run", stop_when=lambda epoch: epoch.number == 2, progress=False
    )
    assert run.result["epochs"] == 2 and len(lines(run.run_dir / "control")) == 2


def test_a_stopped_control_goes_on_with_its_run(tmp_path, monkeypatch, caplog) -> None:
    config = tiny("wind", {"run.report": False, "run.control": True})
    folder, after = tmp_path / "run", Hooks.after

    def stop_in_control(self: Hooks, epoch: amago.Epoch) -> bool:
        if epoch.run_dir.name == "control":
            raise KeyboardInterrupt
        return after(self, epoch)

    monkeypatch.setattr(Hooks, "after", stop_in_control)
    with pytest.raises(KeyboardInterrupt):
        amago.train(config, 0, folder, progress=False)
    assert f"go on with: amago resume {folder}" in caplog.text
    caplog.clear()
    assert go_on_command(folder / "control") == f"amago resume {folder}"
    monkeypatch.setattr(Hooks, "after", after)
    result = amago.resume(folder, progress=False).result
    assert "no memory" in result["reference_scores"] and len(lines(folder / "control")) == 2
    assert caplog.text.count("Not better than random play") == 1, "the run's own result, not both"


def test_an_agent_without_memory_has_no_control(tmp_path) -> None:
    with pytest.raises(ValueError, match="--control compares with an agent without memory"):
        amago.train("wind", memory="feedforward", control=True, run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()
