"""What a run is called above its pictures."""

from __future__ import annotations

import textwrap

from amago.report.runs import RunRecord

_MOST_CHARACTERS = 90


def run_title(run: RunRecord) -> str:
    """The environment first: a preset may train on any."""
    env = played_env(run)
    preset = f" ({run.preset})" if run.preset and run.preset != env else ""
    return f"{textwrap.shorten(env, _MOST_CHARACTERS)}{preset}, seed {run.seed}"


def played_env(run: RunRecord) -> str:
    """Ids of the settings; of a class or function that was given from Python, its own name."""
    settings = run.config.get("env") or {}
    if not run.own_env:
        return ", ".join(settings.get("ids") or [str(settings.get("id", ""))])
    return str((run.result or {}).get("env") or run.own_env)
