"""The short check of a foreign environment before training on it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from amago.check.environment import examine
from amago.envs.catalogue import ENTRY_POINTS, TASKS, full_id
from amago.envs.in_process import Env
from amago.envs.settings import EnvSettings

_LOG = logging.getLogger("amago")
_SECONDS = 5.0
"""Of random play, and as much again for playing a seed twice."""
_RAISED = "the environment raised"


def is_foreign(settings: EnvSettings) -> bool:
    """Whether any of the environments is not one of amago's own."""
    return any(
        full_id(name.partition("?")[0]) not in {*TASKS, *ENTRY_POINTS}
        for name in (settings.ids or (settings.id,))
    )


def check_before_training(make_env: Callable[[], Env], seed: int, timeout: float) -> None:
    """Warn of what `amago check-env` would find in ten seconds; refuse what cannot be played.

    An environment that raises an error may do so rarely; the run says where it did. So it is with
    one that does not answer for `timeout` seconds.
    """
    report = examine(make_env, 1000, seed, _SECONDS, timeout)
    raised = any(problem.what.startswith(_RAISED) for problem in report.problems)
    told = [f"{problem.what}; {problem.remedy}" for problem in report.problems]
    if report.spec is None or not (report.playable or raised):
        raise ValueError(f"{report.name} cannot be trained on: " + ". Also: ".join(told))
    for line in told:
        _LOG.warning(f"{report.name}: {line}")
