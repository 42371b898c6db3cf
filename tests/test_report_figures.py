from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from rich.console import Console
from test_goals_helpers import record_script
from test_report_helpers import write_run

from amago.goals import GoalSpec
from amago.replay.relabel import Choice, _relabeled
from amago.report.curves import mean_curve, plot_run, plot_sweep
from amago.report.evaluations import evaluation_table
from amago.report.panels import clock_of, series, shows_adaptation
from amago.report.relabeling import plot_relabel
from amago.report.runs import find_runs, read_run
from amago.report.sweeps import summarise_sweep, thin
from amago.report.tables import adaptation_bars, sweep_rows, sweep_table


def _sweep(root: Path) -> Path:
    for seed, level in enumerate((2.0, 3.0, 4.0)):
        write_run(root / "dark-key-to-door" / f"seed-{seed}", seed=seed, level=level)
    control = root / "dark-key-to-door__memory=feedforward"
    write_run(control / "seed-0", level=0.5)
    write_run(control / "seed-1", level=0.5, seed=1, complete=False)
    return root


def _printed(renderable: object) -> str:
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(renderable)
    return console.export_text()


def _ink(path: Path) -> float:
    """The share of pixels that are not white."""
    return float((imread(path)[..., :3] < 0.99).any(axis=-1).mean())


def test_references_change_the_figure(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", complete=False))
    plot_run(run, tmp_path / "without.png")
    plot_run(run, tmp_path / "with.png", references={"oracle": [0.4] * 10})
    assert (imread(tmp_path / "without.png") != imread(tmp_path / "with.png")).any()


def test_a_sweep_of_two_methods_is_drawn_over_minutes_too(tmp_path: Path) -> None:
    write_run(tmp_path / "maze" / "seed-0")
    assert "minutes" not in {axes.get_xlabel() for axes in _sweep_figure(tmp_path).axes}
    other = write_run(tmp_path / "maze__method=recurrent-ppo" / "seed-0")
    header = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**header, "baseline": {"method": "x"}}))
    (axes,) = [axes for axes in _sweep_figure(tmp_path).axes if axes.get_xlabel() == "minutes"]
    curves = [line for line in axes.lines if "seed" in str(line.get_label())]
    # Ten evaluations, at every second epoch, of epochs of three seconds.
    assert [line.get_xdata().tolist() for line in curves] == [
        pytest.approx([0.1 * n for n in range(1, 11)])
    ] * 2


def test_a_sweep_shows_success_and_the_scores_of_others_as_lines(tmp_path: Path) -> None:
    write_run(tmp_path / "with" / "maze" / "seed-0")
    write_run(tmp_path / "without" / "maze" / "seed-0", success=False)
    drawn: dict[str, list[str]] = {}
    for name in ("with", "without"):
        figure = _sweep_figure(tmp_path / name)
        drawn[name] = [axes.get_ylabel() for axes in figure.axes]
        returns = figure.axes[0]
        (oracle,) = [line for line in returns.lines if line.get_label() == "oracle"]
        assert set(oracle.get_ydata()) == {2.0}
    assert drawn["without"] == ["return per rollout", "return per tenth"]
    assert drawn["with"] == ["return per rollout", "share of rollouts", "return per tenth"]


@pytest.mark.parametrize(
    ("levels", "seeds", "shared"),
    [((2.0, 2.0), (0, 0), True), ((2.0, 3.0), (0, 0), False), ((2.0, 3.0), (0, 1), False)],
)
def test_runs_share_reference_lines_unless_those_of_their_worlds_differ(
    levels: tuple[float, float], seeds: tuple[int, int], shared: bool, tmp_path: Path
) -> None:
    for name, level, seed in zip(("one", "other"), levels, seeds, strict=True):
        folder = tmp_path / name / f"seed-{seed}"
        write_run(folder, preset="maze-runner", level=level, seed=seed)
        header = json.loads((folder / "config.json").read_text())
        header["config"]["env"]["kwargs"] = {"position": name == "other"}
        (folder / "config.json").write_text(json.dumps(header))
    labels = [line.get_label() for axes in _sweep_figure(tmp_path).axes for line in axes.lines]
    assert labels and ("oracle" in labels) == shared


def _sweep_figure(root: Path) -> Figure:
    kept: list[Figure] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda figure, *_, **__: kept.append(figure))
        plot_sweep(find_runs(root), root / "summary.png")
    return kept[0]


def test_a_run_of_one_epoch_without_evaluation_is_drawn(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", epochs=1, complete=False, success=False))
    plot_run(run, tmp_path / "curves.png")
    assert _ink(tmp_path / "curves.png") > 0.005


@pytest.mark.filterwarnings("error")
def test_a_sweep_has_one_row_of_panels_per_preset_and_one_legend(tmp_path: Path) -> None:
    _sweep(tmp_path)
    write_run(tmp_path / "wind" / "seed-0", preset="wind", success=False)
    figure = _sweep_figure(tmp_path)
    rows = [axes.get_subplotspec().rowspan.start for axes in figure.axes]
    titles = [axes.get_title() for axes in figure.axes]
    assert [title.partition(":")[0] for title in titles] == ["dark-key-to-door"] * 3 + ["wind"] * 2
    assert rows == [0, 0, 0, 1, 1]
    assert all(axes.get_legend() is None for axes in figure.axes)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "dark-key-to-door (3 seeds)", "dark-key-to-door, memory=feedforward (2 seeds)",
        "wind (1 seed)", "oracle", "random",
    ]  # fmt: skip


def test_environments_of_one_preset_get_rows_of_their_own(tmp_path: Path) -> None:
    for env in ("CartPole-v1", "Pendulum-v1"):
        folder = write_run(tmp_path / f"gym__env.id={env}" / "seed-0", preset="gym", success=False)
        header = json.loads((folder / "config.json").read_text())
        header["config"]["env"]["id"] = env
        (folder / "config.json").write_text(json.dumps(header))
    titles = [axes.get_title() for axes in _sweep_figure(tmp_path).axes]
    assert "gym CartPole-v1: evaluation" in titles and "gym Pendulum-v1: evaluation" in titles


def test_adaptation_is_drawn_only_where_tenths_of_a_rollout_mean_something(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    assert shows_adaptation(run, {"oracle": [0.4] * 10})
    assert not shows_adaptation(run, {"oracle": [0.0] * 9 + [1.0]})  # pays at the end alone
    assert not shows_adaptation(run, {"random": [0.1] * 10})  # CartPole: no oracle, one trial
    several = replace(run, metrics=[{**row, "eval/trials_mean": 3.0} for row in run.metrics])
    assert shows_adaptation(several, {})  # trials that fill a horizon
    trials = {**run.config, "env": {"id": "CartPole-v1", "trials": 3}}
    assert not shows_adaptation(replace(several, config=trials), {})


def test_the_mean_curve_covers_the_steps_that_all_seeds_reached() -> None:
    short = (np.array([0.0, 10.0, 20.0]), np.array([0.0, 1.0, 2.0]))
    long = (np.array([0.0, 20.0, 40.0]), np.array([0.0, 4.0, 8.0]))
    steps, means = mean_curve([short, long])
    assert steps.tolist() == [0.0, 10.0, 20.0]
    assert means.tolist() == [0.0, 1.5, 3.0]


def test_curves_go_along_updates_where_a_run_began_without_an_environment(tmp_path: Path) -> None:
    online, offline = (read_run(write_run(tmp_path / name, epochs=4)) for name in ("on", "off"))
    without = [{**row, "env_steps": 0} for row in offline.metrics[:2]]
    offline = replace(offline, metrics=[*without, *offline.metrics[2:]])
    assert clock_of([online]) == "env_steps"
    assert clock_of([online, offline]) == "updates"
    assert series(online, "eval/return_mean")[0].tolist() == [200, 400]
    assert series(offline, "eval/return_mean")[0].tolist() == [10, 20]


def test_importing_the_report_loads_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys, amago.report.sweeps, amago.sweep.sweep; "
        "print([name for name in ('torch', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_figure_of_a_run_is_drawn_without_pyplot(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    code = (
        "import sys; from amago.report.curves import plot_run; "
        "from amago.report.runs import read_run; "
        f"plot_run(read_run({str(folder)!r}), {str(tmp_path / 'curves.png')!r}); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    height, width = imread(tmp_path / "curves.png").shape[:2]
    assert width > 1000 and height > 600
    assert _ink(tmp_path / "curves.png") > 0.02


def test_sweep_rows_hold_the_numbers_worked_by_hand(tmp_path: Path) -> None:
    full, control = sweep_rows(find_runs(_sweep(tmp_path)))
    # Evaluations at 10%, 20%, … of the level; the window holds 80%, 90% and 100%.
    assert full["final_window_per_seed"] == pytest.approx([1.8, 2.7, 3.6])
    assert full["final_window_mean"] == pytest.approx(2.7)
    assert full["maximum"] == pytest.approx(3.0) and full["iqm"] == pytest.approx(2.7)
    assert 1.8 <= full["iqm_low"] < 2.7 < full["iqm_high"] <= 3.6
    assert full["final_evaluation_mean"] == pytest.approx(3.0)
    assert full["minutes_per_run"] == pytest.approx(2.0) and full["complete"] == 3
    assert sum(full["return_per_block"]) == pytest.approx(3.0)
    # Success rises alike in all seeds: 80%, 90% and 100% in the window.
    assert full["success_per_seed"] == pytest.approx([0.9] * 3)
    assert (full["success_low"], full["success_high"]) == pytest.approx((0.9, 0.9))
    (single,) = sweep_rows({"one": find_runs(tmp_path)["dark-key-to-door"][:1]})
    assert single["success_rate"] == pytest.approx(0.9) and single["success_low"] is None
    assert control["complete"] == 1 and control["final_evaluation_per_seed"] == [0.5, None]


def test_the_sweep_table_fits_80_columns_and_says_what_is_incomplete(tmp_path: Path) -> None:
    text = _printed(sweep_table(find_runs(_sweep(tmp_path))))
    assert max(len(line) for line in text.splitlines()) <= 80 and "…" not in text
    assert "1 of 2" in text and "1.80 2.70 3.60" in text and "memory=feedforward" in text
    assert "90%, 90%" in text


def test_a_group_without_evaluations_shows_dashes(tmp_path: Path) -> None:
    write_run(tmp_path / "wind" / "seed-0", epochs=1, complete=False)
    (row,) = sweep_rows(find_runs(tmp_path))
    assert row["iqm"] is None and row["maximum"] is None
    assert "–" in _printed(sweep_table(find_runs(tmp_path)))


def test_the_longest_bar_is_the_largest_return_and_the_reference_is_marked() -> None:
    text = _printed(adaptation_bars([0.0, 1.0, 2.0], [4.0] * 3))
    bars = [line.count("█") for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert bars == [0, 9, 18]
    assert text.count("│") == 4 and "50%" in text  # one in the heading


def test_no_share_of_the_oracle_is_above_a_hundred_per_cent() -> None:
    """Who is late earns in the second tenth what the oracle earned in the first."""
    text = _printed(adaptation_bars([0.0, 3.0, 0.0], [3.0, 1.0, 0.0]))
    shares = [line.split()[-1] for line in text.splitlines() if line.strip()[:1] in ("1", "2", "3")]
    assert shares == ["0%", "–", "–"] and text.split()[-1] == "75%"


def test_negative_returns_hang_from_zero_on_the_right() -> None:
    lines = _printed(adaptation_bars([-2.0, -1.0])).splitlines()
    first, second = (line for line in lines if "█" in line)
    assert first.count("█") == 2 * second.count("█")
    assert first.rindex("█") == second.rindex("█")


def test_the_evaluation_table_leaves_out_an_unknown_success_rate() -> None:
    result = {"return_mean": 1.25, "return_std": 0.5, "episodes": 8, "success_rate": None}
    assert "1.25 ± 0.177" in _printed(evaluation_table(result))
    assert "success" not in _printed(evaluation_table(result))
    assert "87.5%" in _printed(evaluation_table({**result, "success_rate": 0.875}))


def test_a_summary_writes_its_files_and_prints_the_table(tmp_path: Path) -> None:
    root = _sweep(tmp_path / "sweep")
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    rows = summarise_sweep(root, console)
    assert json.loads((root / "summary.json").read_text())["groups"] == rows
    assert "IQM" in console.export_text() and _ink(root / "summary.png") > 0.01
    with (root / "curves.csv").open() as file:
        curves = list(csv.DictReader(file))
    assert len(curves) == 5 * 10
    assert curves[0] == {
        "group": "dark-key-to-door", "seed": "0", "epoch": "2", "env_steps": "200",
        "minutes": "0.1", "eval/return_mean": "0.2", "eval/success_rate": "0.1",
    }  # fmt: skip


def test_thinning_keeps_the_first_and_the_last_row() -> None:
    rows = [{"epoch": epoch} for epoch in range(1000)]
    kept = [row["epoch"] for row in thin(rows, most=10)]
    assert len(kept) == 10 and (kept[0], kept[-1]) == (0, 999)
    assert kept == sorted(set(kept))


@pytest.mark.filterwarnings("error")
def test_the_picture_of_a_relabeling_explains_its_marks_and_shows_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = GoalSpec(3, 1, "token", vocabulary=("", *"abcdefghij"))
    script = [[], *([[ord(c) - 96] for c in row] for row in ("c", "a", "", "b", "d", ""))]
    before = record_script(letters, script, "a, j")
    choice = Choice(np.array([4]), letters.read("b"))
    after = _relabeled(before, letters.read("a, b"))
    plot_relabel(before, after, letters, tmp_path / "relabel.png", choice)
    assert _ink(tmp_path / "relabel.png") > 0.01
    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: kept.append(figure))
    plot_relabel(before, after, letters, tmp_path / "relabel.png", choice)
    (legend,) = kept[0].legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == 6 and "a goal is completed: reward +1" in texts
    top, middle, bottom = kept[0].axes
    drawn = {line.get_label(): line.get_xdata().tolist() for line in middle.lines}
    assert list(drawn.values()) == [[1, 2, 4, 5], [1, 4, 5], [4]] and {*drawn} <= {*texts}
    assert [line.get_label() for line in (*top.lines, *bottom.lines)] == texts[:3] * 2
    assert [text.get_text() for text in bottom.texts] == ["a", "b"]
