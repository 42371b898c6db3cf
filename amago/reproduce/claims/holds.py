"""What must hold in a claim's data, written as people say it, and whether it does.

    full > no memory, intervals apart
    Autoencode Easy: full >= 0.9
    activation/residual of pre-LN > activation/residual of full
    held-out of context 64 > 50%

A side is an arm, "random play", "oracle" or a number. Without a task, every task that has both
sides must agree.
Scores are means over seeds of the final window; "QUANTITY of ARM" takes another quantity: a logged
metric, what a probe counted, or `env_steps`, the steps of a whole run. Intervals are those over
seeds, or over rollouts for one seed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Literal

from amago.report.statistics import bootstrap_interval, final_window_mean
from amago.report.tables import number
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.claims.probes import probe_score
from amago.reproduce.claims.scores import arm_scores, known, mean, reference_score
from amago.rollout.scores import Score

_FORM = re.compile(
    r"(?:(?P<task>[^:]+): )?(?P<left>.+?) (?P<sign>>=|<=|>|<) (?P<right>.+?)"
    r"(?P<apart>, intervals apart)?"
)
_SIGNS = {">": gt, "<": lt, ">=": ge, "<=": le}
_REFERENCES = {"random play": "random", "oracle": "oracle"}
_TWO_SIGMA = 1.96


@dataclass(frozen=True)
class _Verdict:
    """Whether a statement holds; "open" while its arms have not been run."""

    statement: str
    state: Literal["holds", "fails", "open"]
    why: str

    def __str__(self) -> str:
        said = {"holds": "Holds", "fails": "**Does not hold**", "open": "Not known yet"}
        return f"{said[self.state]}: {self.statement} ({self.why})."


@dataclass(frozen=True)
class _Score:
    mean: float
    low: float | None = None
    high: float | None = None


def verdicts(claim: Claim) -> list[_Verdict]:
    """What the data say of every statement."""
    return [_judge(claim, statement) for statement in claim.holds]


def _check_statement(statement: str, names: Sequence[str]) -> None:
    """ValueError unless a statement can be read and speaks of these arms alone."""
    form = _read(statement)
    for side in (form["left"], form["right"]):
        arm = side.rpartition(" of ")[2]
        if arm not in names and arm not in _REFERENCES and _number(side) is None:
            raise ValueError(
                f"{statement!r} speaks of {arm!r}; there are {', '.join(names)}, "
                "random play, oracle, and numbers"
            )


def _judge(claim: Claim, statement: str) -> _Verdict:
    form = _read(statement)
    asked = [form["task"]] if form["task"] else list(claim.tasks)
    compared = {task: _compare(claim, claim.tasks.get(task, []), form) for task in asked}
    # A suite has controls in some of its tasks alone.
    tasks = [task for task in asked if compared[task][0] != "open"] or asked
    found = [compared[task] for task in tasks]
    states = {state for state, _ in found}
    several = len(found) > 1
    said = [
        f"{task}: {why}" if several else why for task, (_, why) in zip(tasks, found, strict=True)
    ]
    if "fails" in states:
        failed = [text for text, (state, _) in zip(said, found, strict=True) if state == "fails"]
        return _Verdict(statement, "fails", "; ".join(failed))
    if "open" in states or not found:
        return _Verdict(statement, "open", "not all of its arms have been run")
    return _Verdict(statement, "holds", "; ".join(said))


def _compare(
    claim: Claim, arms: Sequence[Arm], form: re.Match[str]
) -> tuple[Literal["holds", "fails", "open"], str]:
    left, right = (_score(claim, arms, form[side]) for side in ("left", "right"))
    if left is None or right is None:
        return "open", ""
    sign = form["sign"]
    why = f"{_shown(left, claim.metric)} and {_shown(right, claim.metric)}"
    if not _SIGNS[sign](left.mean, right.mean):
        return "fails", why
    if form["apart"]:
        above, below = (left, right) if ">" in sign else (right, left)
        low, high = above.low, below.high
        if low is None or high is None:
            return "fails", f"{why}, an interval is not known"
        if low <= high:
            return "fails", f"{why}, intervals overlap"
    return "holds", why


def _score(claim: Claim, arms: Sequence[Arm], side: str) -> _Score | None:
    value = _number(side)
    if value is not None:
        return _Score(value, value, value)
    if side in _REFERENCES:
        level = reference_score(arms, claim.metric, _REFERENCES[side])
        return None if level is None else _Score(level, level, level)
    quantity, _, name = side.rpartition(" of ")
    arm = next((arm for arm in arms if arm.name == name), None)
    if arm is None:
        return None
    seeds = known(_quantity(arm, quantity) if quantity else arm_scores(arm, claim.metric).window)
    if not seeds:
        return None
    centre = mean(seeds)
    assert centre is not None
    if len(seeds) > 1:
        return _Score(centre, *bootstrap_interval(seeds))
    error = None if quantity else _error(arm, claim.metric)
    return _Score(centre) if error is None else _Score(centre, centre - error, centre + error)


def _quantity(arm: Arm, quantity: str) -> list[float | None]:
    if quantity == "env_steps":
        return [(run.result or {}).get(quantity) for run in arm.runs]
    if "/" not in quantity:
        return [probe_score(run, quantity) for run in arm.runs]
    curves = ([row[quantity] for row in run.metrics if quantity in row] for run in arm.runs)
    return [final_window_mean(curve) if curve else None for curve in curves]


def _error(arm: Arm, metric: Score) -> float | None:
    """Half the interval of one seed, over its rollouts."""
    pooled = (arm.runs[0].result or {}).get("pooled") or {}
    error = pooled.get(f"{metric.label}_error")
    return None if error is None else _TWO_SIGMA * float(error)


def _shown(score: _Score, metric: Score) -> str:
    def text(value: float) -> str:
        return f"{100 * value:.0f}%" if metric.percent else number(value)

    if score.low is None or score.high is None or score.low == score.high:
        return text(score.mean)
    return f"{text(score.mean)} [{text(score.low)}, {text(score.high)}]"


def _number(side: str) -> float | None:
    try:
        return float(side.removesuffix("%")) / (100 if side.endswith("%") else 1)
    except ValueError:
        return None


def _read(statement: str) -> re.Match[str]:
    form = _FORM.fullmatch(statement)
    if form is None:
        raise ValueError(
            f"expected a statement such as 'full > no memory, intervals apart', got {statement!r}"
        )
    return form
