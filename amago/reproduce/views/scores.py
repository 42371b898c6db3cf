"""Scores of POPGym from 0 (worst return, -1) to 1 (best), beside published ones.

Tasks are called as POPGym's ids. The published numbers and their sources are in published/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from amago.report.panels import PALETTE
from amago.report.suites import normalised
from amago.report.tables import number
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.claims.markdown import markdown, wrapped
from amago.reproduce.claims.scores import arm_scores, mean
from amago.reproduce.published import popgym_data_scores, popgym_scores
from amago.reproduce.views.figure import draw_tall
from amago.rollout.scores import COMPARED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SOURCES = (
    "Scores are returns from -1..1 on 0..1. Published PPO numbers count the best evaluation within "
    "15M steps. GRU and best of 13 memories: POPGym's own paper (Morad et al., ICLR 2023, appendix "
    "Table 3), transcribed second-hand. GRU*: a weaker source for the ids that it lacks, the mean "
    "return of the PPO-GRU policies behind a public offline data set (RATE paper, Table 9), Medium "
    "and Hard swapped back. The paper instead normalises by the highest and lowest of all "
    "baselines, which are not published together."
)
_KINDS = {"GRU": "GRU, published", "GRU*": "GRU*, weaker source", "best": "best of 13, published"}
_MARKERS = {"GRU": "|", "GRU*": "1", "best": "*"}


def draw(claim: Claim, path: Path) -> None:
    names = list(dict.fromkeys(arm.name for arm in claim.arms))
    draw_tall(partial(_panel, claim, names), len(claim.tasks) * max(2, len(names)), path)


def _panel(claim: Claim, names: Sequence[str], axes: Axes) -> None:
    tasks = list(claim.tasks)
    thickness = 0.8 / len(names)
    for index, name in enumerate(names):
        offset = (index - (len(names) - 1) / 2) * thickness
        found = [(task, _window(arm)) for task, arms in claim.tasks.items() for arm in arms
                 if arm.name == name]  # fmt: skip
        points = [(tasks.index(task) + offset, score) for task, score in found if score is not None]
        axes.barh([at for at, _ in points], [score for _, score in points],
                  height=0.9 * thickness, color=PALETTE[index], label=name)  # fmt: skip
    for kind, label in _KINDS.items():
        known = [(row, _published(task).get(kind)) for row, task in enumerate(tasks)]
        levels = [(row, level) for row, level in known if level is not None]
        if levels:
            axes.plot([level for _, level in levels], [row for row, _ in levels], _MARKERS[kind],
                      color="black", markersize=7, linestyle="none", label=label)  # fmt: skip
    axes.set_yticks(range(len(tasks)), tasks, fontsize=8)
    axes.set_ylim(len(tasks) - 0.4, -0.6)  # the first one on top
    axes.set_xlim(0.0, 1.03)
    axes.set_xlabel("normalised score, final window")


def table(claim: Claim) -> str:
    """All scores, and their means over the ids for which both are known."""
    names = list(dict.fromkeys(arm.name for arm in claim.arms))
    rows, pairs = [], []
    for task, arms in claim.tasks.items():
        by_name = {arm.name: arm for arm in arms}
        cells = [_cell(by_name.get(name)) for name in names]
        published = _published(task)
        rows.append([task, *cells, *(number(published.get(kind)) for kind in _KINDS)])
        first = by_name.get(names[0])
        other = published.get("GRU", published.get("GRU*"))
        if first is not None and (ours := _best(first)) is not None and other is not None:
            pairs.append((ours, other))
    header = ["id", *(f"{name}: final (best)" for name in names), *_KINDS.values()]
    return f"{markdown(header, rows)}\n\n{wrapped(_summary(names[0], pairs) + _SOURCES)}"


def _summary(name: str, pairs: Sequence[tuple[float, float]]) -> str:
    if not pairs:
        return ""
    ours, theirs = (fmean(column) for column in zip(*pairs, strict=True))
    return (
        f"Best evaluations over the {len(pairs)} ids where a published GRU is known: "
        f"{name} {number(ours)}, GRU {number(theirs)}. "
    )


def _cell(arm: Arm | None) -> str:
    if arm is None:
        return ""
    return f"{number(_window(arm))} ({number(_best(arm))})"


def _window(arm: Arm) -> float | None:
    return _normal(mean(arm_scores(arm, COMPARED["return"]).window))


def _best(arm: Arm) -> float | None:
    return _normal(mean(arm_scores(arm, COMPARED["return"]).best))


def _normal(value: float | None) -> float | None:
    return None if value is None else normalised(value)


def _published(task: str) -> Mapping[str, float]:
    """What is known of an id, on the scale from 0 to 1."""
    own, other = popgym_scores().get(task.lower()), popgym_data_scores().get(task.lower())
    found = {} if own is None else {"GRU": own["gru"], "best": own["best"]}
    found |= {} if other is None or own is not None else {"GRU*": other}
    return {name: normalised(value) for name, value in found.items()}
