"""The search over settings: what it draws, when it prunes, and that it goes on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from test_run_helpers import command

from amago.report.tuning import _trial_rows, tuning_report
from amago.sweep.jobs import Job, Step
from amago.sweep.space import _Choice, _Range, parse_space
from amago.sweep.sweep import run_jobs
from amago.sweep.tune import Tuner, open_study

pytest.importorskip("optuna")

CHILD = """
import json, pathlib, signal, sys, time
folder, rate, slow = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "slow"
folder.mkdir(parents=True, exist_ok=True)
(folder / "config.json").write_text(json.dumps({"config": {"run": {"epochs": 8}}}))
quality = -abs(rate - 0.5)
with (folder / "metrics.jsonl").open("a") as file:
    for epoch in range(1, 9):
        file.write(json.dumps({"epoch": epoch, "eval/return_mean": quality * 9 / epoch}) + "\\n")
        file.flush()
        time.sleep(30 if slow and epoch == 4 else 0.01)
result = {"return_mean": 0.0, "pooled": {"return_mean": quality}}
(folder / "result.json").write_text(json.dumps(result))
"""


class Bench:
    """A search with fake children; the objective is best at a rate of one half."""

    def __init__(self, folder: Path) -> None:
        self.root, self.child = folder / "tune", folder / "child.py"
        self.child.write_text(CHILD)
        self.started: list[tuple[str, Step]] = []
        self.slow_below = -1.0

    def command(self, job: Job, step: Step) -> list[str]:
        self.started.append((f"{job.run_dir.parent.name}/{job.run_dir.name}", step))
        rate = job.overrides["optim.learning_rate"]
        speed = "slow" if float(rate) < self.slow_below else "fast"
        return [sys.executable, "-S", str(self.child), str(job.run_dir), rate, speed]

    def tuner(self, trials: int, prune: bool = True) -> Tuner:
        study = open_study(self.root, 0, 8, prune)
        space = parse_space(["optim.learning_rate=0.01..1", "memory=gru,transformer"])
        return Tuner(study, "wind", 0, ["run.epochs=8"], space, trials, self.root)

    def run(self, trials: int, prune: bool = True) -> Tuner:
        tuner = self.tuner(trials, prune)
        with Path("/dev/null").open("w") as nowhere:
            run_jobs(
                tuner.take_up(), 2, self.root, command=self.command, feed=tuner.feed,
                console=Console(file=nowhere), poll_seconds=0.02, grace_seconds=5.0,
            )  # fmt: skip
        return tuner


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_ranges_and_choices_are_read() -> None:
    assert parse_space(
        ["optim.learning-rate=1e-5..1e-2:log", "replay.batch_size=8..32", "memory=gru,transformer"]
    ) == [
        _Range("optim.learning_rate", 1e-5, 1e-2, True),
        _Range("replay.batch_size", 8, 32, False),
        _Choice("memory", ("gru", "transformer")),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "expected what to search"),
        (["memory"], "--over expects key=low..high"),
        (["memory=gru"], "--over expects key=low..high"),
        (["optim.learning_rate=low..high"], "--over expects key=low..high"),
        (["optim.learning_rate=1..0"], "lower end first"),
        (["optim.learning_rate=0..1:log"], "above 0 for :log"),
        (["memory=gru,x", "memory=gru,y"], "--over got memory twice"),
    ],
)
def test_a_wrong_space_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_space(given)


def test_a_search_ends_with_the_best_trial_first_and_its_command(bench: Bench, tmp_path) -> None:
    tuner = bench.run(8, prune=False)
    rows = _trial_rows(tuner.study)
    assert len(rows) == 8 and {row["state"] for row in rows} == {"complete"}
    assert [row["value"] for row in rows] == sorted((row["value"] for row in rows), reverse=True)
    rate = rows[0]["settings"]["optim.learning_rate"]
    assert rows[0]["value"] == pytest.approx(-abs(rate - 0.5), abs=1e-4)
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    tuning_report(bench.root, "wind", tuner.study, ["run.epochs=8"], console)
    text = console.export_text()
    assert "best: amago train wind --run.epochs 8 --optim.learning-rate" in text
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("best"))
    assert json.loads((bench.root / "trials.json").read_text())[0]["trial"] == rows[0]["trial"]


def test_runs_below_the_median_end_early(bench: Bench) -> None:
    bench.run(6, prune=False)
    bench.slow_below = 1.1  # from here on all runs stop for long, at epoch 4
    bench.tuner(7).study.enqueue_trial({"optim.learning_rate": 0.01, "memory": "gru"})
    tuner = bench.run(7)
    (row,) = [row for row in _trial_rows(tuner.study) if row["state"] == "pruned"]
    assert row["value"] is None and 2 <= row["epoch"] <= 4
    assert not (bench.root / f"trial-{row['trial']:03d}" / "seed-0" / "result.json").exists()


def test_an_interrupted_search_goes_on_with_its_open_runs(bench: Bench) -> None:
    tuner = bench.tuner(3)
    opened = [tuner._job(tuner.study.ask()) for _ in range(2)]  # a session that was killed
    opened[0].run_dir.mkdir(parents=True)
    (opened[0].run_dir / "config.json").write_text("{}")
    again = bench.run(3)
    assert dict(bench.started) == {
        "trial-000/seed-0": "resume", "trial-001/seed-0": "start", "trial-002/seed-0": "start",
    }  # fmt: skip
    assert len(_trial_rows(again.study)) == 3
    assert again.study.trials[0].params["memory"] == opened[0].overrides["memory"]
    bench.started.clear()
    bench.run(3)  # complete: nothing is left to do
    assert bench.started == []


def test_the_command_line_checks_the_ends_of_every_range(tmp_path, capsys) -> None:
    root = ["--root", tmp_path / "tune"]
    for over, message in (
        (["optim.learning_rat=0.1..1"], "learning-rat"),
        (["optim.learning_rate=-1..1"], "must be positive"),
        ([], "expected what to search"),
    ):
        code, _, err = command(capsys, "tune", "wind", *root, *(["--over", *over] if over else []))
        assert code == 2 and message in err, err
    code, _, err = command(capsys, "tune", "wnd", *root, "--over", "memory=gru,transformer")
    assert code == 2 and "did you mean wind" in err


def test_every_choice_and_a_fraction_are_tried_before_the_first_run(tmp_path, capsys) -> None:
    for over, message in (
        ("memory=gru,trasnformer,feedforward", "trasnformer"),
        ("run.updates_per_epoch=1e1..1e2", "38.6479"),
    ):
        code, _, err = command(capsys, "tune", "wind", "--root", tmp_path / "tune", "--over", over)
        assert code == 2 and message in err, err
    assert not (tmp_path / "tune").exists()
    assert _Range("replay.capacity", 1000, 2_000_000, False).examples() == ("1000", "2000000")


def test_real_runs_are_searched_and_one_that_is_worse_ends_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of CartPole; in the second a rollout ends after 3 steps, so it cannot earn more."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("amago.sweep.tune._STARTUP_TRIALS", 1)
    root, epochs = tmp_path / "tune", 40
    study = open_study(root, 0, epochs, prune=True)
    long, short = ({"env.horizon": h, "run.updates_per_epoch": u} for h, u in ((8, 1), (3, 8)))
    for settings in (long, short):
        study.enqueue_trial(settings)
    few = {
        "size": "tiny", "env.num_lanes": 2, "env.eval_lanes": 2, "rollout.steps_per_epoch": 4,
        "replay.batch_rows": 24, "run.epochs": epochs, "run.eval_interval": 1,
        "run.eval_episodes": 2, "run.final_eval_episodes": 2, "run.report": "False",
    }  # fmt: skip
    code, out, err = command(
        capsys, "tune", "gym", "--root", root, "--trials", 2, "--jobs", 1,
        "--over", "env.horizon=3..8", "run.updates_per_epoch=1..8",
        "--set", *(f"{key}={value}" for key, value in few.items()),
    )  # fmt: skip
    assert code == 0, out + err
    best, pruned = json.loads((root / "trials.json").read_text())
    assert (best["state"], best["settings"]) == ("complete", long)
    assert (pruned["state"], pruned["settings"]) == ("pruned", short)
    assert best["value"] > 3 == pruned["last"] and epochs // 4 <= pruned["epoch"] < epochs
    latest = root / "trial-001" / "seed-0" / "checkpoints" / "latest.json"
    assert latest.is_file(), "what was trained is kept"
    assert "1 done, 0 failed, 0 were complete before, 1 ended early" in out
    assert "--env.horizon 8" in out
    assert all(len(line) <= 80 for line in out.splitlines() if "amago train" not in line)
