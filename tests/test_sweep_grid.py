"""Grids, and names that show only what differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console
from test_report_helpers import write_run
from test_run_helpers import command

from amago.presets.arms import arm_names
from amago.report.runs import find_runs
from amago.report.sweeps import summarise_sweep
from amago.report.tables import sweep_table
from amago.sweep.grid import combinations
from amago.sweep.jobs import amago_command, plan, short_names


def test_several_grids_multiply() -> None:
    found = combinations(["optim.learning-rate=1e-4,3e-4", "memory=gru,transformer"])
    assert found == [
        ["optim.learning_rate=1e-4", "memory=gru"],
        ["optim.learning_rate=1e-4", "memory=transformer"],
        ["optim.learning_rate=3e-4", "memory=gru"],
        ["optim.learning_rate=3e-4", "memory=transformer"],
    ]
    assert combinations([]) == [[]]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (["memory"], "--grid expects key=value,value"),
        (["memory=gru,"], "--grid expects key=value,value"),
        (["memory=gru", "memory=transformer"], "--grid got memory twice"),
    ],
)
def test_a_wrong_grid_is_refused(grid: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        combinations(grid)


def test_a_sweep_trains_baselines_beside_our_own_agent(tmp_path: Path) -> None:
    arms = combinations(["method=amago,recurrent-ppo"])
    own, other = (plan(["t-maze"], [3], arm, tmp_path)[0] for arm in arms)
    assert other.run_dir == tmp_path / "t-maze__method=recurrent-ppo" / "seed-3"
    assert amago_command(own, "start")[3:5] == ["train", "t-maze"]
    assert amago_command(other, "start")[3:6] == ["baseline", "recurrent-ppo", "t-maze"]
    assert "--method" not in amago_command(own, "start") + amago_command(other, "start")
    assert amago_command(own, "resume")[3] == "resume"
    assert amago_command(other, "resume")[-2:] == ["--exist", "overwrite"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["method=recurent-ppo"], "did you mean"),
        (["method=recurrent-ppo", "ppo.clip=3"], "--ppo.clip must be in"),
        (["ppo.clip=0.1"], "ppo.clip"),
    ],
)
def test_a_sweep_refuses_bad_settings_of_a_baseline(
    settings: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = command(capsys, "sweep", "t-maze", "--root", tmp_path, "--set", *settings)
    assert code == 2 and said in err


def test_names_show_only_what_differs() -> None:
    same = "__run.epochs=3"
    groups = [f"wind__optim.learning_rate={rate}{same}" for rate in ("1e-4", "3e-4")]
    assert list(arm_names(groups).values()) == ["learning_rate=1e-4", "learning_rate=3e-4"]
    assert arm_names(["wind__memory=gru"]) == {"wind__memory=gru": "wind, memory=gru"}
    plain = arm_names(["wind", "wind__memory=gru"])
    assert plain == {"wind": "wind", "wind__memory=gru": "memory=gru"}
    two = arm_names(["wind__a.rate=1", "t-maze__b.rate=1"])
    assert list(two.values()) == ["wind, a.rate=1", "t-maze, b.rate=1"]


def test_the_end_of_a_long_folder_is_no_part_of_a_name_unless_arms_differ_there() -> None:
    shared = [f"run.{name * 9}=1" for name in "abcdefghijklmnopq"]
    for key, told in (("optim.learning_rate", "learning_rate=1e-4"), ("zzz.rate", "")):
        arms = [[*shared, f"{key}={rate}"] for rate in ("1e-4", "3e-4")]
        folders = [plan(["wind"], [0], arm, "r")[0].run_dir.parent.name for arm in arms]
        assert all(re.search("-[0-9a-f]{8}$", folder) for folder in folders), "too short to be cut"
        names = list(arm_names(folders).values())
        assert len(set(names)) == 2 and (not told or names[0] == told)


def test_lines_of_a_queue_name_only_what_differs_and_the_seed() -> None:
    arms = [["run.epochs=3", f"optim.learning_rate={rate}"] for rate in ("1e-4", "3e-4")]
    jobs = [job for arm in arms for job in plan(["wind"], [0, 1], arm, "runs")]
    assert list(short_names(jobs).values()) == [
        "learning_rate=1e-4/seed-0", "learning_rate=1e-4/seed-1",
        "learning_rate=3e-4/seed-0", "learning_rate=3e-4/seed-1",
    ]  # fmt: skip


def test_a_picture_and_the_verdict_name_only_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rate in ("1e-4", "3e-4"):
        group = f"wind__optim.learning_rate={rate}__run.epochs=3"
        write_run(tmp_path / group / "seed-0", preset="wind")
    drawn = []
    monkeypatch.setattr("amago.report.curves.draw_arm", lambda *given: drawn.append(given[2]))
    monkeypatch.setattr("amago.report.curves.panels.legend_below", lambda _: None)
    monkeypatch.setattr(
        "amago.report.sweeps.sweep_rows",
        lambda groups: [{"group": g, "not_better_than_random": True} for g in groups],
    )
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    summarise_sweep(tmp_path, console)
    assert set(drawn) == {"learning_rate=1e-4 (1 seed)", "learning_rate=3e-4 (1 seed)"}
    assert "random play: learning_rate=1e-4; learning_rate=3e-4" in console.export_text()


def test_a_sweep_over_a_grid_makes_every_run_and_a_table_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from amago.sweep.queue import Outcome

    planned = []

    def run_here(jobs, num_parallel, root, **_):
        planned.extend(jobs)
        for job in jobs:
            write_run(job.run_dir, preset=job.preset, seed=job.seed)
        return Outcome([], list(jobs), [])

    monkeypatch.setattr("amago.sweep.sweep.run_jobs", run_here)
    monkeypatch.setattr("amago.report.sweeps.plot_sweep", lambda *_: None)
    root = tmp_path / "sweep"
    code, _out, _ = command(
        capsys, "sweep", "wind", "--seeds", 0, 1, "--set", "run.epochs=3", "--root", root,
        "--grid", "optim.learning_rate=1e-4,3e-4", "--grid", "memory=gru,transformer",
    )  # fmt: skip
    assert code == 0 and len(planned) == 8 and [job.seed for job in planned[:4]] == [0] * 4
    assert planned[0].overrides == {
        "run.epochs": "3", "optim.learning_rate": "1e-4", "memory": "gru",
    }  # fmt: skip
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(sweep_table(find_runs(root)))
    text = console.export_text()
    assert "learning_rate=1e-4" in text and "run.epochs" not in text and "optim." not in text
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text
    code, _, err = command(
        capsys, "sweep", "wind", "--grid", "optim.learning_rat=1", "--root", root
    )
    assert code == 2 and "learning-rat" in err
