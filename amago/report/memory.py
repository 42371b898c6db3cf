"""The memory report as tables of the terminal and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from amago.report.curves import new_figure
from amago.report.evaluations import percent
from amago.report.panels import PALETTE, finish
from amago.report.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Part = Mapping[str, Any]
_DOTS_PER_INCH = 130
_WORLDS, _MEMORIES = ("same", "changed"), ("kept", "wiped")
_PARTS = {"attention": "attention", "recall": "recall", "change": "a changed world"}


def memory_tables(report: _Part) -> Iterator[Table | str]:
    """What there is to say of each part, or why there is nothing."""
    for name, title in _PARTS.items():
        if "why_not" in report[name]:
            yield f"{title} does not apply: {report[name]['why_not']}"
    if "heads" in report["attention"]:
        yield _attention_table(report["attention"])
        yield _attention_sentence(report["attention"])
    if "why_not" not in report["recall"]:
        yield _recall_table(report["recall"])
        yield _recall_sentence(report["recall"])
    if "arms" in report["change"]:
        yield _change_table(report["change"])
        yield _change_sentence(report["change"])


def _attention_table(attention: _Part) -> Table:
    """One line per head and one for all: how far back, and to what."""
    table = _table(
        f"Attention, {attention['rollouts']} rollouts",
        "head: layer.head. half, 90%: rows back that hold so much of its attention. The rest: "
        "share of the attention / share if all rows got the same",
    )
    shown = _shown_kinds(attention)
    for column in ("head", "half", "90%", *shown):
        table.add_column(column, justify="right")
    for head in (*attention["heads"], attention["mean"]):
        name = f"{head['layer']}.{head['head']}" if head is not attention["mean"] else "all"
        shares = [f"{100 * head['share'][k]:.0f}/{100 * head['even'][k]:.0f}%" for k in shown]
        reach = (f"{head[key]:.0f}" for key in ("half_within", "most_within"))
        table.add_row(name, *reach, *shares)
    return table


def _attention_sentence(attention: _Part) -> str:
    """What is looked at most, beyond its number of rows."""
    share, even = attention["mean"]["share"], attention["mean"]["even"]
    kind = max(_shown_kinds(attention), key=lambda kind: share[kind] / even[kind])
    got = f"{100 * share[kind]:.0f}% of all attention, {100 * even[kind]:.0f}% if it were even"
    return f"looked at most for its number of rows: {kind} ({got})"


def _recall_table(recall: _Part) -> Table:
    """Return against the rows that memory keeps."""
    table = _table("Recall: memory of the last n rows alone", "±: standard error; same worlds")
    for column in ("n", "return", "lost", "success"):
        table.add_column(column, justify="right")
    for point in recall["points"]:
        lost = f"{number(point['lost'])} ± {number(point['lost_error'])}"
        table.add_row(str(point["rows"]), _return(point), lost, percent(point["success_rate"]))
    whole = recall["whole"]
    table.add_row("all", _return(whole), "", percent(whole["success_rate"]))
    return table


def _recall_sentence(recall: _Part) -> str:
    """The longest recall that is needed."""
    if recall["left_out"]:
        skipped = ", ".join(map(str, recall["left_out"]))
        return f"n = {skipped} would take too long and are left out; fewer --episodes reach further"
    needed = recall["needed"]
    if needed is None:
        return "every shorter memory earns less: what is remembered pays over the whole context"
    if needed == 1:
        return "the current row alone earns as much: nothing that is remembered pays"
    return (
        f"what is remembered pays up to {needed} rows back: {needed // 2} earn less, and more earn "
        "the same within twice the standard error"
    )


def _change_table(change: _Part) -> Table:
    """Return after the moment of the change."""
    table = _table(
        f"A fact made false at step {change['time']}: {change['what']}",
        f"return after that step in {change['worlds']} worlds; ±: standard error",
    )
    for column in ("world", "memory kept", "memory wiped"):
        table.add_column(column, justify="right")
    for world in _WORLDS:
        arms = (change["arms"][f"{world}, {memory}"] for memory in _MEMORIES)
        table.add_row(
            "as it was" if world == "same" else "changed",
            *(f"{number(a['mean'])} ± {number(a['error'])}" for a in arms),
        )
    return table


def _change_sentence(change: _Part) -> str:
    """Whether what was remembered stands in the way."""
    misled = change["misled"]
    told = f"{number(abs(misled['mean']))} ± {number(misled['error'])}"
    if misled["mean"] > 2 * misled["error"]:
        return f"false memories mislead: an empty memory earns {told} more in the changed world"
    if misled["mean"] < -2 * misled["error"]:
        return f"the agent adapts: it earns {told} more than with an empty memory"
    return "in the changed world an empty memory earns as much, within twice the standard error"


def plot_memory(report: _Part, path: str | Path, title: str) -> None:
    """`memory.png`: the parts that there are, side by side; no file where there is none."""
    draws = [_draw_attention] if "heads" in report["attention"] else []
    if report["recall"]["points"]:
        draws.append(_draw_recall)
    if "arms" in report["change"]:
        draws.append(_draw_change)
    if not draws:
        return
    figure = new_figure(5.2 * len(draws), 4.0)
    grid = figure.add_gridspec(1, len(draws))
    for column, draw in enumerate(draws):
        axes = figure.add_subplot(grid[0, column])
        draw(axes, report)
        finish(axes)
    figure.suptitle(f"{title} (bars of error: 2 standard errors)", fontsize=12)
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def _draw_attention(axes: Axes, report: _Part) -> None:
    attention = report["attention"]
    shown = _shown_kinds(attention)
    places = range(len(shown))
    mean = attention["mean"]
    axes.barh([p - 0.2 for p in places], [mean["share"][k] for k in shown], 0.38,
              color=PALETTE[0], label="attention")  # fmt: skip
    axes.barh([p + 0.2 for p in places], [mean["even"][k] for k in shown], 0.38,
              color="#BBBBBB", label="if all rows got the same")  # fmt: skip
    axes.set_yticks(list(places), shown)
    axes.invert_yaxis()
    reach = f"half within {mean['half_within']:.0f} rows, 90% within {mean['most_within']:.0f}"
    axes.set(title=f"Where attention goes\n{reach}", xlabel="share, mean of all heads")
    axes.legend(fontsize=8)


def _draw_recall(axes: Axes, report: _Part) -> None:
    recall = report["recall"]
    points: Sequence[_Part] = recall["points"]
    whole = recall["whole"]
    axes.errorbar([p["rows"] for p in points], [p["return_mean"] for p in points],
                  [2 * p["return_error"] for p in points], color=PALETTE[0], marker="o",
                  capsize=3, label="the last n rows alone")  # fmt: skip
    axes.axhline(whole["return_mean"], color=PALETTE[1], linestyle="--", label="whole memory")
    axes.set_xscale("log", base=2)
    axes.set_xticks([p["rows"] for p in points], [str(p["rows"]) for p in points])
    needed = {None: "every shorter memory earns less", 1: "the current row is enough"}
    text = needed.get(recall["needed"], f"no clear loss from {recall['needed']} rows on")
    axes.set(title=f"How much memory is needed\n{text}", xlabel="n, rows that memory keeps",
             ylabel="return per rollout")  # fmt: skip
    axes.legend(fontsize=8)


def _draw_change(axes: Axes, report: _Part) -> None:
    change = report["change"]
    for place, (memory, color) in enumerate(zip(_MEMORIES, (PALETTE[0], "#BBBBBB"), strict=True)):
        arms = [change["arms"][f"{world}, {memory}"] for world in _WORLDS]
        at = [world + 0.4 * (place - 0.5) for world in range(len(_WORLDS))]
        bars = axes.bar(at, [arm["mean"] for arm in arms], 0.38, color=color,
                        yerr=[2 * arm["error"] for arm in arms], capsize=3,
                        label=f"memory {memory}")  # fmt: skip
        axes.bar_label(bars, [number(arm["mean"]) for arm in arms], fontsize=8, padding=2)
    axes.margins(y=0.3)  # room for the legend
    axes.set_xticks(range(len(_WORLDS)), ["as it was", change["what"]])
    axes.set(title=f"A fact made false at step {change['time']}", xlabel="world after that step",
             ylabel="return after that step")  # fmt: skip
    axes.legend(fontsize=8)


def _shown_kinds(attention: _Part) -> list[str]:
    """The kinds of rows that there were."""
    even = attention["mean"]["even"]
    return [kind for kind, share in even.items() if share > 0]


def _return(scores: _Part) -> str:
    return f"{number(scores['return_mean'])} ± {number(scores['return_error'])}"


def _table(title: str, caption: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=caption,
        caption_justify="left",
    )
