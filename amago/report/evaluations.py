"""One evaluation for a terminal: the agent beside random play, a control and the oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from amago.config import Config
from amago.doctor.history import History
from amago.doctor.rules import below_random
from amago.report.tables import number
from amago.report.tenths import tenths_tell

Result = Mapping[str, Any]
NAMES = {"random": "random play", "no memory": "no memory", "oracle": "oracle"}
"""Other players, in the order of their columns."""
MOST_TRIALS = 8
_SHORT_SECONDS = 60
_WIDEST = 79
"""Columns that a title may take before it is broken."""


def verdict(result: Result) -> str | None:
    """What to say first: that an agent is not better than random play, and what to try."""
    said = below_random(History((), Config(), result))
    return None if said is None else said[0][0].upper() + said[0][1:]


def headline(result: Result) -> str | None:
    """The number to quote: the last evaluations and the final test together, with its error."""
    pooled = result.get("pooled")
    if pooled is None:
        return None
    text = f"return {number(pooled['return_mean'])} ± {number(pooled['return_error'])}"
    if pooled.get("success_rate") is not None:
        text += f", success {percent(pooled['success_rate'])} ± {percent(pooled['success_error'])}"
    evaluations = counted(pooled["evaluations"], "evaluation")
    return f"{text} ({evaluations}, {counted(pooled['episodes'], 'rollout')})"


def evaluation_table(result: Result) -> Table:
    """Return, success and trials; a column for every player of the same worlds."""
    others, title = players(result), f"Evaluation{_what(result)}"
    table = Table(
        title=title,
        min_width=min(len(title), _WIDEST),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=_conditions(result),
        caption_justify="left",
    )
    table.add_column("")
    for name in ("agent", *(NAMES[other] for other in others)):
        table.add_column(name, justify="right")
    scores = [result, *others.values()]
    episodes = result.get("episodes")
    table.add_row("return", *(_return(score, episodes) for score in scores))
    if any(score.get("success_rate") is not None for score in scores):
        table.add_row("success", *(percent(score.get("success_rate")) for score in scores))
    if result.get("trials_mean") is not None:
        table.add_row("trials", *(number(score.get("trials_mean")) for score in scores))
    for index in _shown_trials(result):
        table.add_row(f"trial {index + 1}", *(_trial(score, index) for score in scores))
    for task, earned in result.get("tasks", {}).items():
        rest = [number(earned.get(f"{other}_return_mean")) for other in others]
        table.add_row(task, number(earned["return_mean"]), *rest)
    return table


def players(result: Result) -> dict[str, Result]:
    """The scores of the other players, in the order of their columns."""
    known = result.get("reference_scores") or {}
    return {name: known[name] for name in NAMES if name in known}


def shows_tenths(result: Result, fixed_trials: int | None) -> bool:
    """Whether an evaluation shows tenths of the horizon; `fixed_trials` is --env.trials."""
    oracle = (result.get("references") or {}).get("oracle")
    told = tenths_tell(result.get("trials_mean"), fixed_trials, oracle)
    return told and bool(result.get("return_per_block"))


def percent(share: float | None) -> str:
    """A share for people; a dash where it is not known."""
    return "–" if share is None else f"{100 * share:.1f}%"


def counted(count: int, name: str) -> str:
    """A number of things: 1 epoch, 2 epochs."""
    return f"{count} {name}{'s' if count != 1 else ''}"


def standard_error(deviation: float | None, episodes: int | None) -> float | None:
    return None if deviation is None or not episodes else deviation / math.sqrt(episodes)


def _return(score: Result, episodes: int | None) -> str:
    error = standard_error(score.get("return_std"), episodes)
    mean = number(score.get("return_mean"))
    return mean if error is None else f"{mean} ± {number(error)}"


def _trial(score: Result, index: int) -> str:
    """Return of one trial and, where it is known, its success."""
    returns, successes = (score.get(f"{key}_per_trial") or () for key in ("return", "success"))
    if index >= len(returns):
        return "–"
    solved = f" ({100 * successes[index]:.0f}%)" if index < len(successes) else ""
    return f"{number(returns[index])}{solved}"


def _shown_trials(result: Result) -> list[int]:
    """All trials, or the first few and the last of many."""
    count = len(result.get("return_per_trial") or ())
    return [*range(min(count, MOST_TRIALS - 1)), *([count - 1] if count >= MOST_TRIALS else [])]


def _what(result: Result) -> str:
    env, preset = result.get("env"), result.get("preset")
    made = f"{preset}, seed {result.get('seed')}" if preset else ""
    return f": {env}" + (f" ({made})" if made else "") if env else f": {made}" if made else ""


def _conditions(result: Result) -> str:
    parts = [counted(result["episodes"], "rollout") if "episodes" in result else "– rollouts"]
    if result.get("greedy") is not None:
        parts.append("most likely actions" if result["greedy"] else "sampled actions")
    if result.get("redrawn"):
        parts.append(f"{counted(result['redrawn'], 'world')} redrawn")
    if result.get("epochs") is not None:
        parts.append(counted(result["epochs"], "epoch"))
    if (seconds := result.get("seconds")) is not None:
        short = seconds < _SHORT_SECONDS
        parts.append(f"{seconds:.0f} seconds" if short else f"{seconds / 60:.1f} minutes")
    return ", ".join(parts) + "; ±: standard error"
