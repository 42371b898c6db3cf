"""`amago suite` and the extras: which runs, which scores, which errors."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from test_report_helpers import write_run
from test_run_helpers import command

from amago.cli.suite import _choose
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.report.runs import find_runs
from amago.report.statistics import interquartile_mean, stratified_bootstrap_interval
from amago.report.suites import _suite_rows, arms, report_suite
from amago.sweep.jobs import amago_command
from amago.sweep.queue import Outcome

LEVELS = {
    "RepeatFirstEasy": (1.0, 0.9),
    "BattleshipHard": (-0.5, -0.3),
    "CountRecallEasy": (0, 0.2),
}


def write_arm(root: Path, suffix: str, memory: str, seeds: int = 2) -> None:
    for name, levels in LEVELS.items():
        for seed in range(seeds):
            folder = root / f"popgym__env.id={name}{suffix}" / f"seed-{seed}"
            write_run(folder, preset="popgym", seed=seed, level=levels[seed])
            header = json.loads((folder / "config.json").read_text())
            header["config"] |= {"env": {"id": name, "num_lanes": 4}, "memory": memory}
            (folder / "config.json").write_text(json.dumps(header))


def test_patterns_choose_environments_in_the_order_of_the_suite():
    assert len(_choose(["*"])) == 42 and len(_choose(["paper"])) == 39
    assert len(_choose(["*Easy"])) == 14 and len(_choose(["*", "Labyrinth*"])) == 48
    assert _choose(["HigherLowerHard", "popgym/AutoencodeEasy"]) == [
        "AutoencodeEasy",
        "HigherLowerHard",
    ]
    with pytest.raises(ValueError, match="'Repeat' matches no environment of POPGym; there are"):
        _choose(["Repeat"])


def test_rows_hold_final_window_maximum_and_normalised_score(tmp_path):
    write_arm(tmp_path, "", "transformer")
    rows = {row["id"]: row for row in _suite_rows(find_runs(tmp_path))}
    assert set(rows) == set(LEVELS)
    # Evaluations rise linearly: the last three of ten are at 80, 90 and 100% of the level.
    first = rows["RepeatFirstEasy"]
    assert first["final_window_per_seed"] == pytest.approx([0.9, 0.81])
    assert first["final_window_mean"] == pytest.approx(0.855)
    assert first["maximum"] == pytest.approx(0.95)
    assert first["normalised"] == pytest.approx((0.855 + 1) / 2)
    assert rows["BattleshipHard"]["maximum"] == pytest.approx((-0.05 - 0.03) / 2)


def test_the_suite_is_summed_up_by_the_interquartile_mean_over_all_runs(tmp_path):
    write_arm(tmp_path, "", "transformer")
    (arm,) = arms(_suite_rows(find_runs(tmp_path)))
    finals = {name: [(0.9 * level + 1) / 2 for level in levels] for name, levels in LEVELS.items()}
    per_task = [finals[name] for name in sorted(finals)]
    pooled = [score for task in per_task for score in task]
    assert arm["environments"] == 3
    assert arm["iqm"] == pytest.approx(interquartile_mean(pooled))
    low, high = stratified_bootstrap_interval(per_task)
    assert (arm["iqm_low"], arm["iqm_high"]) == pytest.approx((low, high))
    assert low < arm["iqm"] < high < 1 and arm["iqm_maximum"] > arm["iqm"]


def test_one_seed_has_a_mean_but_no_interval(tmp_path):
    write_arm(tmp_path, "", "transformer", seeds=1)
    (arm,) = arms(_suite_rows(find_runs(tmp_path)))
    assert arm["iqm"] is not None and arm["iqm_low"] is None


def test_arms_in_one_folder_get_a_table_each_and_share_the_chart(tmp_path):
    write_arm(tmp_path, "", "transformer")
    write_arm(tmp_path, "__memory=gru", "gru")
    console = Console(record=True, width=120, file=open("/dev/null", "w"))  # noqa: SIM115
    found = report_suite(tmp_path, console)
    text = console.export_text()
    assert [arm["label"] for arm in found] == ["popgym", "popgym, memory=gru"]
    assert text.count("RepeatFirstEasy") == 2 and text.count("IQM of MMER") == 2
    assert (tmp_path / "suite.png").read_bytes().startswith(b"\x89PNG")
    table = list(csv.DictReader((tmp_path / "suite.csv").open()))
    assert len(table) == 6 and float(table[0]["normalised"]) > 0
    document = json.loads((tmp_path / "suite.json").read_text())
    assert len(document["environments"]) == 6 and len(document["suite"]) == 2


def test_the_verb_plans_every_environment_and_seed_and_scores_them(tmp_path, capsys, monkeypatch):
    planned = []

    def run_jobs(jobs, num_parallel, root, devices):
        assert devices == ("0", "1")
        planned.extend(jobs)
        for job in jobs:
            write_run(job.run_dir, preset=job.preset, seed=job.seed)
        return Outcome([], list(jobs), [])

    monkeypatch.setattr("amago.sweep.sweep.run_jobs", run_jobs)
    line = ["suite", "popgym", "--ids", "RepeatFirstEasy", "Mine*Easy", "--seeds", "0", "3",
            "--set", "memory=gru", "--devices", "0", "1",
            "--root", str(tmp_path / "suite")]  # fmt: skip
    code, out, _ = command(capsys, *line, "--export", str(tmp_path / "results"))
    assert code == 0 and "IQM of final window" in out
    ids = ["RepeatFirstEasy", "MineSweeperEasy"]
    expected = [({"env.id": name, "memory": "gru"}, seed) for seed in (0, 3) for name in ids]
    assert [(job.overrides, job.seed) for job in planned] == expected
    assert len({job.run_dir for job in planned}) == 4
    assert amago_command(planned[0], "start")[3:5] == ["train", "popgym"]
    assert "--env.id" in amago_command(planned[0], "start")
    assert (tmp_path / "results" / "claim.toml").is_file()
    assert "amago suite popgym" in (tmp_path / "results" / "claim.toml").read_text()


@pytest.mark.slow
def test_the_verb_runs_every_environment_and_seed_and_goes_on_where_it_stopped(tmp_path, capsys):
    few = {"env.num_lanes": 2, "env.eval_lanes": 2, "env.horizon": 6, "replay.batch_rows": 24}
    few |= {"run.epochs": 1, "run.updates_per_epoch": 1, "run.eval_episodes": 2}
    few |= {"run.final_eval_episodes": 2, "size": "tiny"}
    settings = [
        f"{k}={' '.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in few.items()
    ]
    line = ["suite", "popgym", "--ids", "RepeatFirstEasy", "MineSweeperEasy", "--seeds", "0",
            "--jobs", "1", "--root", str(tmp_path / "suite"), "--set", *settings]  # fmt: skip
    code, out, _ = command(capsys, *line, "--export", str(tmp_path / "results"))
    assert code == 0 and "2 done, 0 failed" in out
    assert "MineSweeperEasy" in out and "IQM of final window" in out and "needs 2 seeds" in out
    assert (tmp_path / "results" / "claim.toml").is_file()
    assert "amago suite popgym" in (tmp_path / "results" / "claim.toml").read_text()
    code, out, _ = command(capsys, *line)
    assert code == 0 and "2 were complete before" in out and "RepeatFirstEasy" in out


def test_bad_suites_and_settings_fail_before_anything_runs(tmp_path, capsys):
    root = ["--root", str(tmp_path / "suite")]
    assert "there are popgym" in command(capsys, "suite", "popgim", *root)[2]
    assert (
        "RepeatThirdEasy"
        in command(capsys, "suite", "popgym", "--ids", "RepeatThirdEasy", *root)[2]
    )
    assert command(capsys, "suite", "popgym", "--set", "nets.size=3", *root)[0] != 0
    for nothing in ("--ids", "--seeds"):
        code, _, error = command(capsys, "suite", "popgym", nothing, *root)
        assert code == 2 and "at least one of --ids and of --seeds" in error
    assert not (tmp_path / "suite").exists()


@pytest.mark.parametrize(
    ("env_id", "module", "extra"),
    [
        ("popgym/RepeatFirstEasy", "popgym.envs", "popgym"),
        ("RepeatFirstEasy", "popgym.envs", "popgym"),
        ("amago/Crafter-v0", "crafter", "crafter"),
        ("amago/HalfCheetahVelocity-v0", "mujoco", "mujoco"),
        ("amago/MetaWorldML1-v0", "metaworld", "metaworld"),
    ],
)
def test_a_missing_extra_is_an_error_with_the_command_that_installs_it(
    env_id, module, extra, monkeypatch
):
    for name in [name for name in sys.modules if name.startswith("amago.envs.domains.")]:
        if name.endswith((".env", ".game")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError) as error:
        make_vector(EnvSettings(id=env_id), seed=0, num_lanes=1)
    assert f"pip install 'amago[{extra}]'" in str(error.value)
    assert f"pip install -c constraints.txt -e '.[{extra}]'" in str(error.value)


def test_a_suite_without_its_extra_fails_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "amago.envs.domains.popgym.env", raising=False)
    monkeypatch.setitem(sys.modules, "popgym.envs", None)
    code, _, error = command(capsys, "suite", "popgym", "--root", str(tmp_path / "suite"))
    assert code == 2 and "pip install 'amago[popgym]'" in error
    assert not (tmp_path / "suite").exists()


def test_knowing_the_ids_imports_no_suite():
    import subprocess

    program = (
        "import sys, gymnasium, amago.envs.registry\n"
        "assert 'popgym/RepeatFirstEasy' in gymnasium.registry\n"
        "print(sorted({'popgym', 'crafter', 'metaworld', 'mujoco', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
