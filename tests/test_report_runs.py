from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_report_helpers import write_run

from amago.report.runs import find_runs, label, read_run


def test_a_complete_run_is_read_whole(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "first", seed=3, epochs=20))
    assert (run.name, run.preset, run.seed) == ("first", "dark-key-to-door", 3)
    assert run.config["run"]["epochs"] == 20 and run.git_commit == "c0ffee"
    assert [row["epoch"] for row in run.metrics] == list(range(1, 21))
    assert [row["epoch"] for row in run.evaluations] == list(range(2, 21, 2))
    assert run.result is not None and run.result["return_mean"] == 2.0
    assert run.seconds == 120.0


def test_a_run_without_result_counts_the_time_of_its_epochs(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", epochs=4, complete=False))
    assert run.result is None
    assert run.seconds == 12.0


def test_a_half_written_last_line_is_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=20)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 21, "env_st')
    assert [row["epoch"] for row in read_run(folder).metrics] == list(range(1, 21))


def test_a_character_cut_in_two_at_the_end_is_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=2)
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write('{"epoch": 3, "note": "é'.encode()[:-1])
    assert len(read_run(folder).metrics) == 2


def test_a_broken_line_in_the_middle_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=3)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    lines[1] = lines[1][:10]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="line 2"):
        read_run(folder)


def test_the_later_row_of_a_repeated_epoch_counts(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=3)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"epoch": 2, "env_steps": 200, "rollout/return_mean": 77.0}) + "\n")
    rows = read_run(folder).metrics
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert rows[1]["rollout/return_mean"] == 77.0


def test_a_folder_that_is_no_run_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected a run folder.*amago train"):
        read_run(tmp_path)
    (tmp_path / "config.json").write_text('{"name": "other program"}')
    with pytest.raises(ValueError, match="missing: config, preset, seed"):
        read_run(tmp_path)
    (tmp_path / "config.json").write_text("not json")
    with pytest.raises(ValueError, match="expected JSON"):
        read_run(tmp_path)


def test_runs_of_a_sweep_are_grouped_and_sorted_by_seed_as_a_number(tmp_path: Path) -> None:
    for seed in (10, 2):
        write_run(tmp_path / "wind" / f"seed-{seed}", preset="wind", seed=seed, epochs=2)
    write_run(tmp_path / "wind__memory=gru" / "seed-0", preset="wind", epochs=2)
    groups = find_runs(tmp_path)
    assert {name: [run.seed for run in runs] for name, runs in groups.items()} == {
        "wind": [2, 10],
        "wind__memory=gru": [0],
    }
    assert label("wind__memory=gru") == "wind, memory=gru"


def test_a_folder_without_runs_is_no_sweep(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="amago sweep"):
        find_runs(tmp_path)
