"""Numbers in a claim's words, held against its data."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any

from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.scores import arm_scores, known, mean, reference_score
from amago.rollout.scores import COMPARED

_NUMBER = re.compile(r"(?<![\w.])(?P<sign>[-−]?)(?P<digits>\d[\d,]*(?:\.\d+)?|\.\d+)(?P<unit>%?)")
_COUNT = 10
"""Whole numbers up to this count seeds, arms and tasks; they are not looked up."""


def unsupported(claim: Claim) -> list[str]:
    """Numbers in the answer that no score, result, setting or table of the claim rounds to."""
    data = list(_data(claim))
    return [found[0] for found in _NUMBER.finditer(claim.answer) if not _is_in(found, data)]


def _is_in(found: re.Match[str], data: list[float]) -> bool:
    digits = found["digits"].replace(",", "")
    value = float(digits) * (-1 if found["sign"] else 1)
    if found["unit"]:
        return any(_rounds_to(100 * number, value, digits) for number in data)
    if value == int(value) and 0 <= value <= _COUNT and "." not in digits:
        return True
    return any(_rounds_to(number, value, digits) for number in data)


def _rounds_to(number: float, value: float, digits: str) -> bool:
    """Whether a number of the data is the value as it was written; halves round either way."""
    decimals = len(digits.partition(".")[2])
    return abs(number - value) <= 0.5 * 10.0**-decimals + 1e-9


def _data(claim: Claim) -> Iterator[float]:
    for metric in COMPARED.values():
        for arm in claim.arms:
            scores = arm_scores(arm, metric)
            for column in (scores.window, scores.best, scores.final):
                yield from known([*column, mean(column)])
            for run in arm.runs:
                yield from known([row.get(metric.evaluation) for row in run.evaluations])
        for arms in claim.tasks.values():
            for name in ("random", "oracle"):
                yield from known([reference_score(arms, metric, name)])
    for arm in claim.arms:
        for run in arm.runs:
            yield from _leaves(run.config)
            yield from _leaves(run.result)
            yield from ([] if run.seconds is None else [run.seconds / 60])
    for name in (*claim.tables, *_files(claim)):
        yield from _cells(claim, name)


def _leaves(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, str):
        yield from (float(text) for text in re.findall(r"\d+(?:\.\d+)?", value))


def _files(claim: Claim) -> list[str]:
    return [str(path.relative_to(claim.folder)) for path in (claim.folder / "data").glob("*.csv")]


def _cells(claim: Claim, name: str) -> Iterator[float]:
    """The numbers of a table."""
    with (claim.folder / name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    for row in rows:
        for cell in row:
            yield from _leaves(cell.replace(",", "").replace("%", ""))
