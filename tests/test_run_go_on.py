"""Going on: more epochs, other settings, a folder that is in use, a run that is finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_run_helpers import command, differing, lines, tiny

import amago
from amago import api
from amago.training.view import Silent

SHORT = {"env.kwargs": {"horizon": 5}, "run.epochs": 3}


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amago.api.plot_run", lambda *_: None)


def _train(folder: Path, **changes: Any) -> Path:
    api.train(tiny("wind", {**SHORT, **changes}), 1, folder, preset="wind")
    return folder


def _header(folder: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return header


def _result(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


@pytest.mark.parametrize(("given", "in_all"), [("5", 5), ("+2", 5)])
def test_a_finished_run_goes_on_to_a_new_end_with_other_settings(given, in_all, tmp_path, capsys):
    folder = _train(tmp_path / "run")
    before = _result(folder)
    code, out, _ = command(
        capsys, "resume", folder, "--epochs", given, "--set", "optim.learning_rate=1e-4",
        "--set", "run.updates_per_epoch=3",
    )  # fmt: skip
    assert code == 0 and "Evaluation" in out
    header, after = _header(folder), _result(folder)
    assert after["epochs"] == in_all and before["epochs"] == 3
    assert [row["epoch"] for row in lines(folder)] == [1, 2, 3, 4, 5]
    assert lines(folder)[-1]["updates"] == 2 * 2 + 2 * 3  # epoch 1 only collects
    assert header["config"]["optim"]["learning_rate"] == 1e-4
    (change,) = header["changes"]
    assert change["epoch"] == 3
    assert change["settings"] == {
        "optim.learning_rate": [tiny("wind").optim.learning_rate, 1e-4],
        "run.epochs": [3, in_all],
        "run.updates_per_epoch": [2, 3],
    }


def test_more_epochs_from_python_are_those_of_a_run_that_planned_them(tmp_path):
    # The last epoch is always evaluated, and annealing takes a share of what is planned.
    fixed = {"exploration.anneal_steps": 50, "run.eval_interval": 1, "optim.final_fraction": 1.0}
    whole = _train(tmp_path / "whole", **fixed, **{"run.epochs": 5})
    parts = _train(tmp_path / "parts", **fixed)
    api.resume(parts, epochs="+2")
    assert differing(whole, parts) == []


def test_every_change_is_remembered(tmp_path):
    folder = _train(tmp_path / "run")
    api.resume(folder, epochs="+1", set={"optim.learning_rate": 2e-4})
    api.resume(folder, epochs="+1", set={"optim.learning-rate": 1e-4})
    rates = [c["settings"]["optim.learning_rate"] for c in _header(folder)["changes"]]
    assert rates[1] == [2e-4, 1e-4] and [c["epoch"] for c in _header(folder)["changes"]] == [3, 4]


def test_a_finished_run_says_so_and_how_to_go_on(tmp_path, capsys):
    folder = _train(tmp_path / "run")
    before = _result(folder)
    code, out, err = command(capsys, "resume", folder)
    assert code == 0 and "finished after 3 epochs" in err and "--epochs +50" in err
    assert "Evaluation" in out and _result(folder) == before and "changes" not in _header(folder)
    code, _, err = command(capsys, "resume", folder, "--set", "optim.learning_rate=1e-4")
    assert code == 2 and "is finished after 3 epochs" in err and "--epochs +50" in err


def test_a_finished_run_that_gets_a_control_may_run_elsewhere(tmp_path, capsys):
    folder = _train(tmp_path / "run")
    wanted = ["--set", "run.control=True", "--set", "run.threads=2", "--set", "env.num_workers=1"]
    code, out, err = command(capsys, "resume", folder, *wanted)
    assert code == 0 and "no memory" in out and "is finished" not in err
    assert _header(folder)["config"]["run"]["threads"] == 2
    assert _header(folder / "control")["config"]["env"]["num_workers"] == 1
    # With its control, the run is finished.
    code, _, err = command(capsys, "resume", folder)
    assert code == 0 and "finished after 3 epochs" in err
    code, _, err = command(capsys, "resume", folder, "--set", "optim.learning_rate=1e-4")
    assert code == 2 and "is finished after 3 epochs" in err


def test_the_result_is_that_of_the_new_end_also_when_it_is_earlier(tmp_path):
    folder = _train(tmp_path / "run", **{"run.keep_interval": 1, "run.save_interval": 1})
    api.resume(folder, epoch=2, epochs=2)
    assert _result(folder)["epochs"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "2"], "has trained 3 epochs, more than --epochs 2"),
        (["--epochs", "many"], "a number of epochs in all, such as 200"),
        (["--epochs", "+2", "--set", "transformer.model_dim=32"], "cannot be changed"),
        (["--epochs", "+2", "--set", "env.num_lanes=9"], "cannot be changed"),
        (["--epochs", "+2", "--set", "optim.learning_rat=1"], "did you mean optim.learning_rate"),
        (["--epochs", "+2", "--set", "optim.learning_rate=fast"], "optim.learning_rate must be"),
    ],
)
def test_what_cannot_go_on_is_refused_and_changes_nothing(arguments, message, tmp_path, capsys):
    folder = _train(tmp_path / "run")
    before = {p: p.read_bytes() for p in folder.rglob("*.json*")}
    code, _, err = command(capsys, "resume", folder, *arguments)
    assert code == 2 and message in err
    assert {p: p.read_bytes() for p in folder.rglob("*.json*")} == before


class StopAfter(Silent):
    """An exception in somebody's own view, after some epochs."""

    def __init__(self, epochs: int) -> None:
        self.left = epochs

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self.left -= 1
        if self.left < 0:
            raise ZeroDivisionError("a mistake in a callback")


def test_a_used_folder_is_refused_resumed_or_replaced_as_asked(tmp_path):
    folder, config = tmp_path / "run", tiny("wind", {**SHORT, "run.epochs": 4})
    with pytest.raises(ZeroDivisionError):
        api.train(config, 1, folder, view=StopAfter(2))
    assert (folder / "checkpoints").is_dir()  # what was trained is kept
    with pytest.raises(ValueError, match="--exist"):
        api.train(config, 1, folder)
    api.train(config, 1, folder, exist="resume")
    whole = tmp_path / "whole"
    api.train(config, 1, whole, exist="resume")  # a new folder is simply used
    assert differing(folder, whole) == []
    with pytest.raises(ValueError, match="has the seed 1, got 2"):
        api.train(config, 2, folder, exist="resume")
    longer = amago.config.override(config, {"run.epochs": 5})
    assert api.train(longer, 1, folder, exist="resume").result["epochs"] == 5
    assert _header(folder)["changes"][0]["settings"] == {"run.epochs": [4, 5]}
    api.train(config, 2, folder, exist="overwrite")
    assert _header(folder)["seed"] == 2 and len(lines(folder)) == 4
    with pytest.raises(ValueError, match="exist takes error, resume, overwrite"):
        api.train(config, 2, folder, exist="replace")  # type: ignore[arg-type]


def test_the_command_line_replaces_a_run_but_nothing_else(tmp_path, capsys):
    folder = _train(tmp_path / "run")
    small = ["--epochs", "2", "--run.updates-per-epoch", "1", "--size", "tiny",
             "--env.kwargs.horizon", "5", "--run.final-eval-episodes", "2"]  # fmt: skip
    code, _, err = command(capsys, "train", "wind", "--run-dir", folder, *small)
    assert code == 2 and "is not empty" in err and "--exist" in err
    code, _, _ = command(
        capsys, "train", "wind", "--run-dir", folder, "--exist", "overwrite", *small
    )
    assert code == 0 and len(lines(folder)) == 2
    for name, text in (("letter.txt", "dear"), ("config.json", '{"mine": 1}')):
        mine = tmp_path / name.partition(".")[0]
        mine.mkdir()
        (mine / name).write_text(text)
        code, _, err = command(
            capsys, "train", "wind", "--run-dir", mine, "--exist", "overwrite", *small
        )
        assert code == 2 and (mine / name).read_text() == text, err


def test_a_run_that_is_being_written_is_not_replaced(tmp_path):
    folder, config = _train(tmp_path / "run"), tiny("wind", SHORT)
    run = api.restore(folder, epochs="+1")
    try:
        with pytest.raises(ValueError, match="only writer"):
            api.train(config, 1, folder, exist="overwrite")
    finally:
        run.close()
    assert (folder / "metrics.jsonl").is_file()
