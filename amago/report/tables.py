"""Results as terminal tables, and as the plain rows behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from amago.presets.arms import arm_names
from amago.report.runs import Row, RunRecord
from amago.report.statistics import (
    bootstrap_interval,
    final_window_mean,
    interquartile_mean,
    maximum,
)

_BAR_CELLS = 36


def instruction_table(rows: Sequence[Mapping[str, Any]], episodes: int) -> Table:
    """Success per instruction, beside random play."""
    title = f"Success per instruction, {episodes} rollouts each"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("instruction")
    table.add_column("success", justify="right")
    table.add_column("random", justify="right")
    for row in rows:
        shares = (f"{100 * row[name]:.1f}%" for name in ("success", "random"))
        table.add_row(row["instruction"], *shares)
    return table


def adaptation_bars(
    return_per_block: Sequence[float],
    reference: Sequence[float] | None = None,
    reference_name: str = "oracle",
) -> Table:
    """The adaptation curve as bars, one per tenth of the horizon, │ where the reference is."""
    scale = [0.0, *return_per_block, *(reference or ())]
    low, high = min(scale), max(scale)
    cells_per_unit = _BAR_CELLS / (high - low) if high > low else 0.0
    table = Table(title="Adaptation: return per tenth of the horizon", box=box.SIMPLE_HEAD)
    table.title_justify = "left"
    table.add_column("tenth", justify="right")
    table.add_column("", min_width=_BAR_CELLS + 1, no_wrap=True)
    table.add_column("return", justify="right", no_wrap=True)
    if reference is not None:
        table.add_column(f"│ {reference_name}", no_wrap=True, justify="right")
        table.add_column("share", justify="right")
    for index, value in enumerate(return_per_block):
        zero, end = (round((number - low) * cells_per_unit) for number in (0.0, value))
        bar = Text(" " * (_BAR_CELLS + 1))
        bar = _paint(bar, range(min(zero, end), max(zero, end)), "█", "cyan")
        compared: list[str] = []
        if reference is not None:
            goal = reference[index]
            mark = round((goal - low) * cells_per_unit)
            bar = _paint(bar, range(mark, mark + 1), "│", "yellow")
            compared = [number(goal), share(value, goal)]
        table.add_row(str(index + 1), bar, number(value), *compared)
    if reference is not None:
        earned, best = sum(return_per_block), sum(reference)
        table.add_row("all", "", number(earned), number(best), share(earned, best))
    return table


def share(value: float, best: float) -> str:
    """In per cent; none where a slow player earns in one tenth what the oracle had before it."""
    return f"{100 * value / best:.0f}%" if best > 0 and value <= best * (1 + 1e-9) else "–"


def sweep_rows(groups: Mapping[str, Sequence[RunRecord]]) -> list[Row]:
    """One plain row per group; None where a number is not known yet."""
    return [_sweep_row(group, runs) for group, runs in groups.items()]


def sweep_table(groups: Mapping[str, Sequence[RunRecord]]) -> Table:
    """The scores of a sweep over seeds, one line per group."""
    rows = sweep_rows(groups)
    table = Table(
        title="Sweep: evaluation return, means over seeds",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
        caption="final window: last tenth of the evaluations, of success too; "
        "best: best evaluation of each seed; "
        "final: the evaluation that ended the run; random: random play in its worlds; "
        "min: minutes per run",
        caption_justify="left",
    )
    table.add_column("group", overflow="fold")
    table.add_column("seeds", justify="right")
    table.add_column("final window\nand per seed", justify="right")
    table.add_column("best", justify="right", no_wrap=True)
    table.add_column("IQM, 95%\ninterval", justify="right", no_wrap=True)
    table.add_column("final\nrandom", justify="right", no_wrap=True)
    with_success = any(row["success_rate"] is not None for row in rows)
    if with_success:
        table.add_column("success", justify="right", no_wrap=True)
    table.add_column("min", justify="right")
    names = arm_names(groups)
    for row in rows:
        count, complete = len(row["seeds"]), row["complete"]
        per_seed = " ".join(number(value) for value in row["final_window_per_seed"])
        cells = [
            names[row["group"]].replace(", ", "\n"),
            f"{count}" if complete == count else f"{complete} of {count}",
            f"{number(row['final_window_mean'])}\n{per_seed}",
            number(row["maximum"]),
            number(row["iqm"]) + _interval(row["iqm_low"], row["iqm_high"]),
            f"{number(row['final_evaluation_mean'])}\n{number(row['random_mean'])}",
        ]
        if with_success:
            rates = [row[name] for name in ("success_rate", "success_low", "success_high")]
            mean, low, high = ("–" if rate is None else f"{100 * rate:.0f}%" for rate in rates)
            cells.append(mean if rates[1] is None else f"{mean}\n{low}, {high}")
        minutes = row["minutes_per_run"]
        table.add_row(*cells, "–" if minutes is None else f"{minutes:.1f}")
    return table


def _sweep_row(group: str, runs: Sequence[RunRecord]) -> Row:
    curves = [[float(row["eval/return_mean"]) for row in run.evaluations] for run in runs]
    windows = [final_window_mean(curve) if curve else None for curve in curves]
    scores = [score for score in windows if score is not None]
    best = [maximum(curve) if curve else None for curve in curves]
    successes = [_success_window(run) for run in runs]
    results = [run.result for run in runs if run.result is not None]
    low, high = _bounds(windows)
    success_low, success_high = _bounds(successes)
    blocks = [result["return_per_block"] for result in results if result.get("return_per_block")]
    return {
        "group": group,
        "preset": runs[0].preset,
        "seeds": [run.seed for run in runs],
        "complete": len(results),
        "final_window_per_seed": windows,
        "final_window_mean": _mean(windows),
        "maximum_per_seed": best,
        "maximum": _mean(best),
        "iqm": interquartile_mean(scores) if scores else None,
        "iqm_low": low,
        "iqm_high": high,
        "final_evaluation_per_seed": [run.result and run.result["return_mean"] for run in runs],
        "final_evaluation_mean": _mean([result["return_mean"] for result in results]),
        "random_mean": _mean([_random_return(run) for run in runs]),
        "not_better_than_random": not_better_than_random(runs),
        "success_per_seed": successes,
        "success_rate": _mean(successes),
        "success_low": success_low,
        "success_high": success_high,
        "return_per_block": [_mean(block) for block in zip(*blocks, strict=True)],
        "minutes_per_run": _minutes(runs),
    }


def _random_return(run: RunRecord) -> float | None:
    """What random play earns in the worlds of a run's final test, or of its first evaluation."""
    scores = ((run.result or {}).get("reference_scores") or {}).get("random") or {}
    logged = (row.get("random/return_mean") for row in run.metrics)
    value = scores.get("return_mean", next((v for v in logged if v is not None), None))
    return None if value is None else float(value)


def not_better_than_random(runs: Sequence[RunRecord]) -> bool:
    """Whether the final tests of a group are, on average, not above random play."""
    pairs = [(run.result["return_mean"], _random_return(run)) for run in runs if run.result]
    known = [(mean, random) for mean, random in pairs if random is not None]
    return bool(known) and fmean(mean - random for mean, random in known) <= 0.0


def _success_window(run: RunRecord) -> float | None:
    rates = [row.get("eval/success_rate") for row in run.evaluations]
    known = [float(rate) for rate in rates if rate is not None]
    return final_window_mean(known) if known else None


def _bounds(scores: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The interval over seeds; one seed says nothing about the spread."""
    known = [score for score in scores if score is not None]
    return bootstrap_interval(known) if len(known) > 1 else (None, None)


def _minutes(runs: Sequence[RunRecord]) -> float | None:
    """Mean wall time: of the complete runs alone, once there are any."""
    counted = [run for run in runs if run.result is not None] or runs
    seconds = _mean([run.seconds for run in counted])
    return None if seconds is None else seconds / 60


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _paint(bar: Text, cells: range, character: str, style: str) -> Text:
    plain = bar.plain
    painted = Text(plain[: cells.start] + character * len(cells) + plain[cells.stop :])
    painted.spans = list(bar.spans)
    painted.stylize(style, cells.start, cells.stop)
    return painted


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"\n{number(low)}, {number(high)}"


def number(value: float | None) -> str:
    """Three digits of a value, or a dash where it is not known."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return f"{value}"
    decimals = 3 - min(3, len(str(int(abs(value)))) if abs(value) >= 1 else 0)
    return f"{value:.{decimals}f}"
