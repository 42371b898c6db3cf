"""An agent without memory beside a run: trained on request, taken along when the run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_run_helpers import command, flags, lines, tiny

import amago
from amago import api
from amago.saved.header import go_on_command
from amago.scale.learn_group import _LAUNCHED
from amago.training.hooks import Hooks
from amago.training.run import TrainingRun
from amago.training.view import Silent


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


def test_a_run_has_ended_its_processes_before_its_control_begins(tmp_path, monkeypatch) -> None:
    open_parts: list[str] = []
    closed: list[str] = []
    start_learners, start_collection = api.start_learners, api.start_collection

    def watched(kind: str, start: Any) -> Any:
        def begin(run: TrainingRun) -> Any:
            assert open_parts == ([] if kind == "learners" else [f"{run.folder.name} learners"])
            part, name = start(run), f"{run.folder.name} {kind}"
            open_parts.append(name)
            close = part.close

            def end() -> None:
                open_parts.remove(name)  # so that a second call fails
                closed.append(name)
                close()

            part.close = end
            return part

        return begin

    monkeypatch.setattr(api, "start_learners", watched("learners", start_learners))
    monkeypatch.setattr(api, "start_collection", watched("collection", start_collection))
    config = tiny("wind", {"run.control": True, "run.report": True})
    run = amago.train(config, 0, tmp_path / "run", progress=False)
    assert closed == ["run collection", "run learners", "control collection", "control learners"]
    assert "no memory" in run.result["reference_scores"]
    assert "no memory" in (run.run_dir / "report.html").read_text()


def test_the_folder_of_a_run_is_locked_while_its_control_trains(tmp_path, monkeypatch) -> None:
    config = tiny("wind", {"run.control": True})
    folder, refused = tmp_path / "run", list[str]()

    def second_writer(self: Hooks, epoch: amago.Epoch) -> bool:
        if epoch.run_dir.name == "control":
            with pytest.raises(ValueError, match="only writer") as error:
                amago.resume(folder, progress=False)
            refused.append(str(error.value))
        return False

    monkeypatch.setattr(Hooks, "after", second_writer)
    amago.train(config, 0, folder, progress=False)
    assert len(refused) == 2


def test_several_ranks_of_torchrun_train_no_control(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "run"
    plain = amago.train(tiny("wind"), 0, tmp_path / "plain", progress=False)
    before = {path: path.read_bytes() for path in plain.run_dir.rglob("*.json*")}
    for name in _LAUNCHED:
        monkeypatch.setenv(name, {"RANK": "0", "WORLD_SIZE": "2"}.get(name, "1"))
    told = (
        r"expected one process, got 2 learners of torchrun.*afterwards on one process with .amago "
    )
    with pytest.raises(ValueError, match=told + r"resume RUN --set run.control=True"):
        amago.train(tiny("wind", {"run.control": True}), 0, folder, progress=False)
    assert not folder.exists()
    with pytest.raises(ValueError, match=told):
        amago.resume(plain.run_dir, set={"run.control": True}, progress=False)
    assert {path: path.read_bytes() for path in plain.run_dir.rglob("*.json*")} == before
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match=told):
        amago.train(tiny("wind", {"run.control": True}), 0, folder, progress=False)


def test_a_control_of_other_settings_or_more_epochs_begins_again(tmp_path) -> None:
    settings = {"run.control": True, "run.keep_interval": 1, "run.save_interval": 1}
    run = amago.train(tiny("wind", settings), 0, tmp_path / "run", progress=False)
    control = run.run_dir / "control"
    # Where it runs is no other training: the control goes on.
    run = run.resume(epochs="+1", set={"run.threads": 2}, progress=False)
    assert "changes" in json.loads((control / "config.json").read_text())
    run = run.resume(epochs="+1", set={"optim.learning_rate": 1e-5}, progress=False)
    header = json.loads((control / "config.json").read_text())
    assert header["config"]["optim"]["learning_rate"] == 1e-5 and "changes" not in header
    assert len(lines(control)) == _result(control)["epochs"] == 4
    # The run goes back by one epoch, and nothing that its control learned later counts.
    run = amago.resume(run.run_dir, epoch=3, epochs=3, progress=False)
    assert len(lines(control)) == _result(control)["epochs"] == run.result["epochs"] == 3
    beside = run.result["reference_scores"]["no memory"]["return_mean"]
    assert beside == _result(control)["return_mean"]


def test_a_control_with_another_result_but_the_same_epochs_begins_again(tmp_path) -> None:
    run = amago.train(tiny("wind", {"run.control": True}), 0, tmp_path / "run", progress=False)
    control = run.run_dir / "control"
    run = amago.resume(run.run_dir, epoch=0, set={"run.updates_per_epoch": 3}, progress=False)
    assert lines(run.run_dir)[-1]["updates"] == lines(control)[-1]["updates"] == 3


class MyView(Silent):
    """Somebody's own."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def begin(self, folder: Path) -> None:
        self.begun.append(folder.name)


def test_a_view_of_ones_own_is_the_only_one(tmp_path, capsys) -> None:
    view = MyView()
    amago.train(tiny("wind", {"run.control": True}), 0, tmp_path / "run", view=view)
    assert view.begun == ["run"] and capsys.readouterr().out == ""


def test_the_command_line_shows_the_control_too(tmp_path, capsys) -> None:
    folder = tmp_path / "run"
    given = flags(tiny("wind"), amago.preset("wind"))
    _, out, _ = command(capsys, "train", "wind", "--run-dir", folder, "--control", *given)
    assert f"run folder: {folder / 'control'}" in out and out.count("epoch 2/2") == 2
