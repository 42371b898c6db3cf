"""`report.html` of a run: plays the agent for a film and its attention, then writes the page."""

from __future__ import annotations

import io
import logging
from dataclasses import replace
from pathlib import Path

from amago.agent.policy import AgentPolicy
from amago.config import from_dict
from amago.envs.catalogue import changed_settings
from amago.envs.registry import MakeEnv
from amago.envs.settings import EnvSettings
from amago.evaluation.attention import diagnose_rollout, events
from amago.evaluation.film import Film, FilmSettings, gif_bytes, record
from amago.evaluation.panel import Shot
from amago.evaluation.play import PlaySettings
from amago.report.attention import Attention, caption, plot_attention
from amago.report.page import REPORT, Shown, report_page
from amago.report.runs import read_run

_LOG = logging.getLogger("amago")
_FILM = FilmSettings(side=360, max_steps=60)
_LONG = 48
"""Steps above which a film shows both ends of a rollout instead of its beginning."""
_MOST_ROWS = 600
"""Rows of a rollout above which attention is not drawn: it has that many squared weights."""


def write_report(
    folder: Path, policy: AgentPolicy | None, env: EnvSettings, settings: PlaySettings,
    *, make_env: MakeEnv | None = None, why_not: str = "",
) -> Shown:  # fmt: skip
    """Write report.html into a run's folder; what was played for it.

    Without a policy, which may need classes that only their author has, `why_not` stands in
    place of film and attention.
    """
    run = read_run(folder)
    shown = Shown(film_note=why_not)
    if policy is not None:
        shown = _film(shown, policy, env, settings, make_env)
        shown = _attention(shown, policy, env, settings, make_env)
    changed = changed_settings(from_dict(run.config), run.preset)
    (folder / REPORT).write_text(report_page(run, changed, shown), encoding="utf-8")
    return shown


def _film(
    shown: Shown, policy: AgentPolicy, env: EnvSettings, settings: PlaySettings,
    make_env: MakeEnv | None,
) -> Shown:  # fmt: skip
    """Not every environment can be drawn here, and a report is not worth a failed run."""
    try:
        shots = record(policy, env, settings, _FILM, make_env=make_env)[0]
    except Exception as error:
        _LOG.debug("no film", exc_info=True)
        return replace(shown, film_note=f"No film: {error}")
    film = replace(_FILM, ends=len(shots) > _LONG)
    return replace(shown, film=gif_bytes(Film([shots], film)), trials=_trials(shots))


def _trials(shots: list[Shot]) -> list[tuple[int, float]]:
    """Steps and return of each trial."""
    starts = [0, *shots[-1].trials, shots[-1].time]
    totals = [shots[time].total for time in starts]
    return [
        (starts[n + 1] - starts[n], totals[n + 1] - totals[n])
        for n in range(len(starts) - 1)
        if starts[n + 1] > starts[n]
    ]


def _attention(
    shown: Shown, policy: AgentPolicy, env: EnvSettings, settings: PlaySettings,
    make_env: MakeEnv | None,
) -> Shown:  # fmt: skip
    horizon = policy.agent.spec.horizon
    if horizon is not None and horizon > _MOST_ROWS:
        return replace(shown, attention_note=f"Not drawn for rollouts of {horizon} steps.")
    try:
        rollout, layers = diagnose_rollout(policy, env, settings, make_env=make_env)
    except Exception as error:
        return replace(shown, attention_note=f"No picture: {error}")
    attention = Attention(
        [layer.weights.cpu().numpy() for layer in layers],
        [layer.entropy.cpu().numpy() for layer in layers],
        events(rollout),
    )
    picture = io.BytesIO()
    plot_attention(attention, picture, captioned=False)
    return replace(shown, attention=picture.getvalue(), attention_note=caption(attention))
