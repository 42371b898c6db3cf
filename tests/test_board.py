"""The board: what counts as reached, what a table says, and a run that ends at its bar."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from amago.board.reached import Reached, median_minutes, reached
from amago.board.table import board_rows, group_name, markdown_table, write_board
from amago.board.tasks import TASKS, choose
from amago.cli import main
from amago.cli.board_run import main as run_one
from amago.report.runs import read_run

_SECONDS = {"collect_cpu_seconds": 20.0, "learn_cpu_seconds": 40.0}


def _write_run(
    root: Path, task: str, seed: int, scores: list[float], method: str = "amago"
) -> None:
    """A run with one evaluation an epoch, 50 updates and a minute of CPU time each."""
    folder = root / group_name(task, method) / f"seed-{seed}"
    folder.mkdir(parents=True)
    header = {"preset": TASKS[task].preset, "seed": seed, "config": {}}
    (folder / "config.json").write_text(json.dumps(header))
    rows = [
        {
            "epoch": epoch,
            "updates": 50 * epoch,
            "env_steps": 100 * epoch,
            "eval/return_mean": 0.0,
            TASKS[task].metric.evaluation: score,
        }
        for epoch, score in enumerate(scores, start=1)
    ]
    timing = [{"epoch": row["epoch"], **_SECONDS} for row in rows]
    _write_lines(folder / "metrics.jsonl", rows)
    _write_lines(folder / "timing.jsonl", timing)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_what_a_run_spent_ends_at_its_first_evaluation_at_the_bar(tmp_path: Path) -> None:
    _write_run(tmp_path, "dark-key-to-door", 0, [3.0, 22.0, 30.0])
    run = read_run(tmp_path / "dark-key-to-door__amago" / "seed-0")
    spent = reached(run, TASKS["dark-key-to-door"])
    assert spent == Reached(updates=100, env_steps=200, minutes=2.0)


def test_a_run_below_its_bar_has_not_reached_it(tmp_path: Path) -> None:
    _write_run(tmp_path, "package-delivery", 0, [0.5, 0.89])
    run = read_run(tmp_path / "package-delivery__amago" / "seed-0")
    assert reached(run, TASKS["package-delivery"]) is None


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [([3.0, 1.0, 2.0], 2.0), ([3.0, math.nan, 2.0], 3.0), ([3.0, math.nan, math.nan], None)],
)
def test_a_seed_that_never_arrives_is_the_slowest(
    minutes: list[float], expected: float | None
) -> None:
    spent = [None if math.isnan(one) else Reached(1, 1, one) for one in minutes]
    assert median_minutes(spent) == expected


def test_the_table_shows_all_seeds_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    _write_run(tmp_path, "package-delivery", 0, [0.92])
    _write_run(tmp_path, "package-delivery", 1, [0.2])
    _write_run(tmp_path, "package-delivery", 0, [0.1], method="no memory")
    _write_run(tmp_path, "t-maze", 0, [0.5, 1.0])
    rows = board_rows(tmp_path)
    write_board(rows, tmp_path)
    table = (tmp_path / "README.md").read_text()
    assert table == markdown_table(rows)
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == [
        "| t-maze", "| package-delivery", "| package-delivery",
    ]  # fmt: skip
    assert "| t-maze | 1 | amago | 2.0 | 8 | 100 | 1 of 1 | 1 |" in table
    assert "| package-delivery | 90% | amago | – | 20 | 50 | 1 of 2 | 92% 20% |" in table
    assert "| package-delivery | 90% | no memory | – | 20 | – | 0 of 1 | 10% |" in table
    records = json.loads((tmp_path / "board.json").read_text())
    assert len(records) == 4 and records[0]["reached"]["updates"] == 100


def test_an_unknown_task_gets_a_hint() -> None:
    with pytest.raises(ValueError, match="dark-key-to-door"):
        choose(["dark-key-to-dor"])


def test_every_task_has_a_preset_that_takes_its_settings() -> None:
    from amago.cli.train import train_options
    from amago.sweep.jobs import flags

    for task in TASKS.values():
        train_options(task.preset, flags(dict(task.changes)))


def test_the_list_of_tasks_shows_bars_and_runs_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["board", "--list"])
    assert end.value.code == 0
    assert "package-delivery" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_run_of_the_board_ends_at_its_bar_and_is_then_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    monkeypatch.setitem(TASKS, "t-maze", replace(TASKS["t-maze"], bar=-1.0))
    settings = {
        "size": "tiny", "env.kwargs.corridor": 4, "env.num-lanes": 4, "run.epochs": 5,
        "run.updates-per-epoch": 1, "run.eval-interval": 2, "run.eval-episodes": 4,
        "run.final-eval-episodes": 4, "replay.batch-rows": 24,
    }  # fmt: skip
    changes = [part for key, value in settings.items() for part in (f"--{key}", str(value))]
    folder = tmp_path / "t-maze__amago" / "seed-0"
    run_one("t-maze", "0", str(folder), *changes)
    assert (folder / "result.json").is_file()
    (row,) = board_rows(tmp_path)
    assert row.spent[0] is not None
    assert row.spent[0].updates == 1 and row.spent[0].minutes > 0
    assert len(read_run(folder).metrics) == 2
