"""The panels of a figure: each draws one aspect of a run on its axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from amago.report.runs import RunRecord
from amago.report.tenths import tenths_tell

# matplotlib takes half a second to import: only the functions that draw may import it.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Clock = Literal["env_steps", "updates"]
CLOCKS: Mapping[Clock, str] = {"env_steps": "environment steps", "updates": "updates"}
"""What training is measured in, and its name below a curve."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours for colour-blind readers, without their yellow, too pale on white."""
_FAINT = "#9DB8CC"
_LEGEND_CHARACTERS_PER_INCH = 12
TRAINING_RETURN = ("rollout/return_mean", "rollout/return")
TRAINING_SUCCESS = ("rollout/success_rate", "rollout/success")
_REFERENCE_STYLES = {
    "oracle": ("#000000", "--"), "random": ("#777777", ":"), "no memory": ("#B03A2E", "-."),
}  # fmt: skip


def draw_return(axes: Axes, run: RunRecord) -> None:
    """Return of training and of the evaluations."""
    _draw_training(axes, run, TRAINING_RETURN)
    steps, values = series(run, "eval/return_mean")
    _, spreads = series(run, "eval/return_std")
    _, episodes = series(run, "eval/episodes")
    axes.plot(steps, values, color=PALETTE[0], marker="o", markersize=3, label="evaluation")
    if len(spreads) == len(episodes) == len(values):
        error = 2.0 * spreads / np.sqrt(np.maximum(episodes, 1.0))
        axes.fill_between(steps, values - error, values + error, color=PALETTE[0], alpha=0.2,
                          linewidth=0, label="± 2 standard errors")  # fmt: skip
    draw_levels(axes, _levels(run, "return_mean"))
    label_steps(axes, "Return", "return per rollout", clock_of([run]))


def _draw_training(axes: Axes, run: RunRecord, names: Sequence[str]) -> None:
    """The noisy curve of the exploring policy, behind that of the evaluations."""
    for key in [name for name in names if len(series(run, name)[0])][:1]:
        axes.plot(*series(run, key), color=_FAINT, linewidth=1.0, label="training")


def draw_success(axes: Axes, run: RunRecord) -> None:
    """Share of successful rollouts in training and in the evaluations."""
    _draw_training(axes, run, TRAINING_SUCCESS)
    axes.plot(*series(run, "eval/success_rate"), color=PALETTE[2], marker="o", markersize=3,
              label="evaluation")  # fmt: skip
    draw_levels(axes, _levels(run, "success_rate"))
    axes.set_ylim(-0.03, 1.03)
    label_steps(axes, "Success", "share of rollouts", clock_of([run]))


def draw_adaptation(axes: Axes, run: RunRecord, references: Mapping[str, Sequence[float]]) -> None:
    """Return per tenth of the horizon, before and after training."""
    _draw_first_and_last(axes, adaptation(run))
    draw_references(axes, references)
    label_tenths(axes, "Adaptation within a rollout")


def draw_trials(axes: Axes, run: RunRecord) -> None:
    """Return of each trial of a rollout, before and after training."""
    _draw_first_and_last(axes, trial_returns(run))
    draw_references(axes, trials_of_others(run))
    label_trials(axes, "Return per trial")


def _draw_first_and_last(axes: Axes, curves: Sequence[tuple[str, Floats]]) -> None:
    styles: list[dict[str, Any]] = [
        {"color": PALETTE[4], "marker": "s", "linestyle": "--"},
        {"color": PALETTE[0], "marker": "o", "linewidth": 2.4},
    ]
    for (name, earned), style in zip(curves, styles[-len(curves) :], strict=True):
        axes.plot(range(1, len(earned) + 1), earned, label=name, markersize=4, **style)


def draw_losses(axes: Axes, run: RunRecord) -> None:
    """All terms of the loss."""
    curves = {key.removeprefix("loss/"): series(run, key) for key in keys(run, "loss/")}
    for (name, (steps, values)), color in zip(curves.items(), cycle(PALETTE), strict=False):
        axes.plot(steps, values, color=color, linewidth=1.2, label=name)
    sizes = np.abs(np.concatenate([values for _, values in curves.values()]))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if sizes.size:
        # Losses differ by orders of magnitude and may be negative: linear only around zero.
        axes.set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(np.quantile(sizes, 0.2))))
    label_steps(axes, "Losses", "loss (symmetric log scale)", clock_of([run]))


def draw_entropy(axes: Axes, run: RunRecord) -> None:
    """How undecided the policy is."""
    axes.plot(*series(run, "policy/entropy"), color=PALETTE[3])
    label_steps(axes, "Policy entropy", "entropy (nats)", clock_of([run]))


def draw_values(axes: Axes, run: RunRecord) -> None:
    """What the critics expect at a few discounts."""
    names = sorted(keys(run, "value/q"), key=_discount)
    # Runs learn up to 20 discounts: the shortest, the middle and the longest tell the story.
    chosen = dict.fromkeys((names[0], names[len(names) // 2], names[-1]))
    for key, color in zip(chosen, PALETTE, strict=False):
        axes.plot(*series(run, key), color=color, label=key.removeprefix("value/"))
    label_steps(axes, "Value estimates (by discount)", "scaled discounted return", clock_of([run]))


def draw_references(axes: Axes, references: Mapping[str, Sequence[float]]) -> None:
    """What known policies earn per tenth of the horizon."""
    for name, blocks in references.items():
        color, style = _REFERENCE_STYLES.get(name, ("#777777", "-."))
        tenths = range(1, len(blocks) + 1)
        axes.plot(tenths, blocks, color=color, linestyle=style, linewidth=1.5, label=name)


def draw_levels(axes: Axes, levels: Mapping[str, float]) -> None:
    """What known policies earn, as lines across a curve over training."""
    for name, level in levels.items():
        color, style = _REFERENCE_STYLES.get(name, ("#777777", "-."))
        axes.axhline(level, color=color, linestyle=style, linewidth=1.5, label=name)


def _levels(run: RunRecord, score: str) -> dict[str, float]:
    """One score of the oracle, random play and a control, as far as a run knows it."""
    known = (run.result or {}).get("reference_scores") or {}
    if "random" not in known:
        logged = [row for row in run.metrics if row.get(f"random/{score}") is not None]
        known = {**known, **({"random": {score: logged[-1][f"random/{score}"]}} if logged else {})}
    return {name: row[score] for name, row in known.items() if row.get(score) is not None}


def clock_of(runs: Iterable[RunRecord]) -> Clock:
    """What curves of runs go along: updates, where one of them began without an environment."""
    offline = any(run.metrics and not run.metrics[0]["env_steps"] for run in runs)
    return "updates" if offline else "env_steps"


def series(run: RunRecord, key: str, clock: Clock | None = None) -> tuple[Floats, Floats]:
    """Environment steps, or updates, and values of one metric, where it was logged."""
    rows = [row for row in run.metrics if row.get(key) is not None]
    along = clock or clock_of([run])
    steps = np.array([row[along] for row in rows], np.float64)
    return steps, np.array([row[key] for row in rows], np.float64)


def minutes_series(run: RunRecord, key: str) -> tuple[Floats, Floats]:
    """Minutes and values of one metric, where it was logged and timed."""
    known = [
        (run.minutes(row["epoch"]), row[key]) for row in run.metrics if row.get(key) is not None
    ]
    timed = np.array([pair for pair in known if pair[0] is not None], np.float64).reshape(-1, 2)
    return timed[:, 0], timed[:, 1]


def keys(run: RunRecord, prefix: str) -> list[str]:
    """The metrics whose path begins with a prefix, in the order in which they were logged."""
    items = (item for row in run.metrics for item in row.items())
    return list(
        dict.fromkeys(k for k, value in items if k.startswith(prefix) and value is not None)
    )


def _discount(key: str) -> float:
    """The number behind the @ of a metric's path, to sort by."""
    try:
        return float(key.partition("@")[2])
    except ValueError:
        return 0.0


def adaptation(run: RunRecord) -> list[tuple[str, Floats]]:
    """Return per tenth of the horizon: of the first evaluation, where known, and of the last."""
    return _first_and_last(run, "return_per_block")


def trial_returns(run: RunRecord) -> list[tuple[str, Floats]]:
    """Return per trial: of the first evaluation, where known, and of the last."""
    return _first_and_last(run, "return_per_trial")


def trials_of_others(run: RunRecord) -> dict[str, Sequence[float]]:
    """What other players earned per trial in the final test."""
    scores = (run.result or {}).get("reference_scores") or {}
    found = {name: score.get("return_per_trial") for name, score in scores.items()}
    return {name: earned for name, earned in found.items() if earned}


def _first_and_last(run: RunRecord, name: str) -> list[tuple[str, Floats]]:
    key = f"eval/{name}"
    found = [
        (f"evaluation at epoch {row['epoch']}", row[key]) for row in run.metrics if row.get(key)
    ]
    final = (run.result or {}).get(name)
    if final:
        found.append(("final evaluation", final))
    ends = [found[0], found[-1]] if len(found) > 1 else found
    return [(name, np.array(earned, np.float64)) for name, earned in ends]


def label_steps(axes: Axes, title: str, unit: str, clock: Clock) -> None:
    """Title and axes of a curve over training."""
    from matplotlib.ticker import EngFormatter, ScalarFormatter

    axes.set(title=title, xlabel=CLOCKS[clock], ylabel=unit)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if isinstance(axes.yaxis.get_major_formatter(), ScalarFormatter):
        axes.ticklabel_format(axis="y", useOffset=False)


def label_minutes(axes: Axes, title: str, unit: str) -> None:
    """Title and axes of a curve over wall time."""
    label_steps(axes, title, unit, "env_steps")
    axes.set(xlabel="minutes")


def label_shares(axes: Axes) -> None:
    """The y axis in percent."""
    from matplotlib.ticker import PercentFormatter

    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def label_tenths(axes: Axes, title: str) -> None:
    """Title and axes of an adaptation curve."""
    axes.set(title=title, xlabel="tenth of the horizon", ylabel="return per tenth")
    axes.set_xticks(range(1, 11))


def label_trials(axes: Axes, title: str) -> None:
    """Title and axes of the returns of a rollout's trials."""
    from matplotlib.ticker import MaxNLocator

    axes.set(title=title, xlabel="trial", ylabel="return per trial")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def finish(axes: Axes) -> None:
    """The look that all panels share."""
    axes.grid(True, color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.title.set_fontsize(11)


def legend_below(figure: Figure) -> None:
    """One legend for all panels of a figure, below them, where it hides no curve."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(name, handle)
    if not named:
        return
    # What was learned first, what it is compared with last.
    named = dict(sorted(named.items(), key=lambda item: item[0] in _REFERENCE_STYLES))
    widest = max(len(line) for name in named for line in name.split("\n"))
    columns = int(figure.get_figwidth() * _LEGEND_CHARACTERS_PER_INCH / (widest + 6))
    figure.legend(
        list(named.values()), list(named), loc="outside lower center", fontsize=9, frameon=False,
        ncols=max(1, min(columns, len(named))),
    )  # fmt: skip


def legend_under(axes: Axes) -> None:
    """The legend of one panel, for figures whose panels share no curves."""
    names = axes.get_legend_handles_labels()[1]
    if len(names) > 1:
        axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15),
                    ncols=min(4, len(names)))  # fmt: skip


def shows_adaptation(run: RunRecord, references: Mapping[str, Sequence[float]]) -> bool:
    """Whether the tenths of a rollout say how well the agent adapts."""
    known = [row["eval/trials_mean"] for row in run.metrics if row.get("eval/trials_mean")]
    if trials := (run.result or {}).get("trials_mean"):
        known.append(trials)
    fixed = (run.config.get("env") or {}).get("trials")
    told = tenths_tell(known[-1] if known else None, fixed, references.get("oracle"))
    return told and bool(adaptation(run))
