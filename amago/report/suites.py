"""A benchmark suite: scores per environment, and one number over all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from amago.report.panels import PALETTE
from amago.report.runs import Row, RunRecord, find_runs, label
from amago.report.statistics import interquartile_mean, stratified_bootstrap_interval
from amago.report.sweeps import write_csv
from amago.report.tables import number, sweep_rows

_RETURN_RANGE = (-1.0, 1.0)
"""POPGym scales its rewards so that returns lie between these [Morad et al. 2023, §4]."""
_ID_IN_NAME = re.compile(r"__env\.id=.*?(?=__|$)")


def normalised(value: float) -> float:
    """A return on the scale from the worst, 0, to the best, 1."""
    low, high = _RETURN_RANGE
    return (value - low) / (high - low)


def _suite_rows(groups: Mapping[str, Sequence[RunRecord]]) -> list[Row]:
    """One row per arm and environment. An arm is all runs that differ in it and in seed alone."""
    rows: list[Row] = []
    for summary in sweep_rows(groups):
        config = groups[summary["group"]][0].config
        env = {key: value for key, value in config["env"].items() if key != "id"}
        mean = summary["final_window_mean"]
        rows.append(
            {
                "arm": json.dumps({**config, "env": env}, sort_keys=True),
                "label": label(_ID_IN_NAME.sub("", summary["group"])),
                "id": config["env"]["id"].removeprefix("popgym/"),
                "normalised": None if mean is None else normalised(mean),
                **{
                    key: summary[key]
                    for key in (
                        "group", "seeds", "complete", "final_window_mean", "maximum",
                        "final_window_per_seed", "maximum_per_seed", "minutes_per_run",
                        "random_mean", "not_better_than_random",
                    )
                },
            }
        )  # fmt: skip
    return rows


def arms(rows: Sequence[Row]) -> list[Row]:
    """Over the environments of each arm: interquartile means of the normalised scores."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["arm"], []).append(row)
    return [_arm(members) for members in found.values()]


def _suite_table(rows: Sequence[Row]) -> Table:
    """The scores of one arm, and below them those over the whole suite."""
    (over_all,) = arms(rows)
    table = Table(
        title=f"{over_all['label']}: evaluation return, means over seeds",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        caption="final window: last tenth of the evaluations, 3 at least; "
        "MMER: best evaluation of each seed; normalised: final window from -1..1 to 0..1; "
        "!: not better than random play",
        caption_justify="left",
    )
    table.add_column("environment")
    for column in ("seeds", "final\nwindow", "MMER", "random\nplay", "normal-\nised"):
        table.add_column(column, justify="right")
    for row in rows:
        count, complete = len(row["seeds"]), row["complete"]
        table.add_row(
            row["id"],
            f"{count}" if complete == count else f"{complete} of {count}",
            number(row["final_window_mean"]),
            number(row["maximum"]),
            number(row["random_mean"]) + (" !" if row["not_better_than_random"] else ""),
            number(row["normalised"]),
        )
    table.add_section()
    for name, key in (("final window", "iqm"), ("MMER", "iqm_maximum")):
        low, high = over_all[f"{key}_low"], over_all[f"{key}_high"]
        interval = "needs 2 seeds" if low is None else f"{number(low)}, {number(high)}"
        table.add_row(f"IQM of {name}", "", "", "95%:", interval, number(over_all[key]))
    return table


def report_suite(root: str | Path, console: Console | None = None) -> list[Row]:
    """Write suite.json, .csv and .png into a sweep's folder, and print a table per arm."""
    folder = Path(root)
    rows = _suite_rows(find_runs(folder))
    over_all = arms(rows)
    plain = [{key: value for key, value in row.items() if key != "arm"} for row in rows]
    document = {"suite": over_all, "environments": plain}
    (folder / "suite.json").write_text(json.dumps(document, indent=2) + "\n")
    write_csv(folder / "suite.csv", tuple(plain[0]), plain)
    _plot_suite(rows, folder / "suite.png")
    for arm in dict.fromkeys(row["arm"] for row in rows):
        members = [row for row in rows if row["arm"] == arm]
        (console or Console()).print(_suite_table(members))
    return over_all


def _plot_suite(rows: Sequence[Row], path: str | Path) -> None:
    """A bar per environment and arm, from the lowest to the highest seed, MMER as a tick."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["id"] for row in rows))
    kinds = list(dict.fromkeys(row["arm"] for row in rows))
    figure = Figure(figsize=(9.0, 1.6 + 0.28 * len(names) * len(kinds)), layout="constrained")
    axes = figure.add_subplot()
    thickness = 0.8 / len(kinds)
    for index, arm in enumerate(kinds):
        members = [
            row for row in rows if row["arm"] == arm and row["final_window_mean"] is not None
        ]
        if not members:
            continue
        places = [
            names.index(row["id"]) + (index - (len(kinds) - 1) / 2) * thickness for row in members
        ]
        means = np.array([row["final_window_mean"] for row in members])
        scores = [[s for s in row["final_window_per_seed"] if s is not None] for row in members]
        spread = [means - [min(s) for s in scores], [max(s) for s in scores] - means]
        low = _RETURN_RANGE[0]
        axes.barh(
            places,
            means - low,
            height=thickness * 0.9,
            left=low,
            xerr=spread,
            color=PALETTE[index % len(PALETTE)],
            label=members[0]["label"],
        )
        axes.plot([row["maximum"] for row in members], places, "|", color="black", markersize=9)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(*_RETURN_RANGE)
    axes.set_xlabel("return: final window, lowest to highest seed (line), MMER (tick)")
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside lower center", fontsize=9)
    figure.savefig(path, dpi=130)


def _arm(rows: Sequence[Row]) -> Row:
    arm: Row = {"label": rows[0]["label"], "environments": len(rows)}
    for key, scores in (("iqm", "final_window_per_seed"), ("iqm_maximum", "maximum_per_seed")):
        per_task = [[normalised(s) for s in row[scores] if s is not None] for row in rows]
        per_task = [task for task in per_task if task]
        # One seed says nothing about the spread over seeds.
        known = bool(per_task) and min(map(len, per_task)) > 1
        low, high = stratified_bootstrap_interval(per_task) if known else (None, None)
        pooled = [score for task in per_task for score in task]
        arm |= {key: interquartile_mean(pooled) if pooled else None}
        arm |= {f"{key}_low": low, f"{key}_high": high}
    return arm
