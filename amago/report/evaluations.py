"""One evaluation for a terminal: the agent beside random play, a control and the oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from amago.config import Config
from amago.doctor.history import History
from amago.doctor.rules import below_random
from amago.report.tables import number
from amago.report.tenths import tenths_tell
from amago.rollout.scores import SHOWN, Score

Result = Mapping[str, Any]
_NAMES = {"random": "random play", "no memory": "no memory", "oracle": "oracle"}
"""Other players, in the order of their columns."""
_MOST_TRIALS = 8
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
    evaluations = _counted(pooled["evaluations"], "evaluation")
    return f"{text} ({evaluations}, {_counted(pooled['episodes'], 'rollout')})"


def evaluation_table(result: Result) -> Table:
    """All known scores, then single trials; a column for every player of the same worlds."""
    others, title = _players(result), f"Evaluation{_what(result)}"
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
    for name in ("agent", *(_NAMES[other] for other in others)):
        table.add_column(name, justify="right")
    scores = [result, *others.values()]
    for label, cells in score_cells(scores, result.get("episodes")):
        table.add_row(label, *cells)
    for index in _shown_trials(result):
        table.add_row(f"trial {index + 1}", *(_trial(score, index) for score in scores))
    for task, earned in result.get("tasks", {}).items():
        rest = [number(earned.get(f"{other}_return_mean")) for other in others]
        table.add_row(task, number(earned["return_mean"]), *rest)
    return table


def score_cells(players: Sequence[Result], episodes: int | None) -> list[tuple[str, list[str]]]:
    """The scores that any of the players has: the label, and one cell for each of them."""
    return [
        (score.label, [_cell(score, scores, episodes) for scores in players])
        for score in SHOWN
        if any(scores.get(score.key) is not None for scores in players)
    ]


def _players(result: Result) -> dict[str, Result]:
    """The scores of the other players, in the order of their columns."""
    known = result.get("reference_scores") or {}
    return {name: known[name] for name in _NAMES if name in known}


def shows_tenths(result: Result, fixed_trials: int | None) -> bool:
    """Whether an evaluation shows tenths of the horizon; `fixed_trials` is --env.trials."""
    oracle = (result.get("references") or {}).get("oracle")
    told = tenths_tell(result.get("trials_mean"), fixed_trials, oracle)
    return told and bool(result.get("return_per_block"))


def percent(share: float | None) -> str:
    """A share for people; a dash where it is not known."""
    return "–" if share is None else f"{100 * share:.1f}%"


def _counted(count: int, name: str) -> str:
    """A number of things: 1 epoch, 2 epochs."""
    return f"{count} {name}{'s' if count != 1 else ''}"


def _standard_error(deviation: float | None, episodes: int | None) -> float | None:
    return None if deviation is None or not episodes else deviation / math.sqrt(episodes)


def _cell(score: Score, scores: Result, episodes: int | None) -> str:
    value = scores.get(score.key)
    text = percent(value) if score.percent else number(value)
    error = _standard_error(scores.get(score.spread), episodes) if score.spread else None
    return text if error is None else f"{text} ± {number(error)}"


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
    return [*range(min(count, _MOST_TRIALS - 1)), *([count - 1] if count >= _MOST_TRIALS else [])]


def _what(result: Result) -> str:
    env, preset = result.get("env"), result.get("preset")
    made = f"{preset}, seed {result.get('seed')}" if preset else ""
    return f": {env}" + (f" ({made})" if made else "") if env else f": {made}" if made else ""


def _conditions(result: Result) -> str:
    parts = [_counted(result["episodes"], "rollout") if "episodes" in result else "– rollouts"]
    if result.get("greedy") is not None:
        parts.append("most likely actions" if result["greedy"] else "sampled actions")
    if result.get("redrawn"):
        parts.append(f"{_counted(result['redrawn'], 'world')} redrawn")
    if result.get("epochs") is not None:
        parts.append(_counted(result["epochs"], "epoch"))
    if (seconds := result.get("seconds")) is not None:
        short = seconds < _SHORT_SECONDS
        took = _counted(round(seconds), "second") if short else f"{seconds / 60:.1f} minutes"
        parts.append(took)
    return ", ".join(parts) + "; ±: standard error"
