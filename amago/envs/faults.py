"""Errors of environments: where they happened, and how to see them again."""

from __future__ import annotations

import json
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amago.checks import described
from amago.envs.settings import EnvSettings

_SUFFIX = ".fault.json"
_MOST_PLACES = 8


class EnvFaultError(ValueError):
    """An environment raised, or returned what no environment may return."""


@dataclass(frozen=True)
class Place:
    """Which call of which environment."""

    name: str
    lane: int
    world_seed: int
    step: int
    """0 is the reset."""

    def __str__(self) -> str:
        when = f"step {self.step}" if self.step else "its reset"
        return f"{self.name}, lane {self.lane}, world seed {self.world_seed}, {when}"


def fault(
    place: Place, error: BaseException, actions: Sequence[Any], settings: EnvSettings | None
) -> EnvFaultError:
    """The error of an environment with its traceback, and a file that repeats it."""
    what = described(error)
    trace = "".join(traceback.format_exception(error)).rstrip()
    path = _write_fault(place, what, actions, settings)
    vouched = " --trust" if settings is not None and settings.imports else ""
    again = (
        f"`amago check-env {path}{vouched}` repeats it"
        if settings is not None and settings.id
        else f"reset(seed={place.world_seed}) and the actions in {path} repeat it"
    )
    return EnvFaultError(f"{trace}\nthe environment failed ({what}) at {place}; {again}")


def fault_among(places: Sequence[Place], error: BaseException) -> EnvFaultError:
    """The error of environments that are stepped together, with all places that it may have."""
    what = described(error)
    trace = "".join(traceback.format_exception(error)).rstrip()
    shown = "; ".join(map(str, places[:_MOST_PLACES]))
    more = f"; and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    where = shown if len(places) == 1 else f"one of: {shown}{more}"
    return EnvFaultError(f"{trace}\nthe environment failed ({what}) after {where}")


def _write_fault(
    place: Place, what: str, actions: Sequence[Any], settings: EnvSettings | None
) -> Path:
    """What is needed to play a rollout again up to its error, in a file."""
    record = {
        "env": None if settings is None else asdict(settings),
        "world_seed": place.world_seed,
        "actions": [np.asarray(action).tolist() for action in actions],
        "error": what,
    }
    with tempfile.NamedTemporaryFile("w", prefix="amago-", suffix=_SUFFIX, delete=False) as file:
        json.dump(record, file)
    return Path(file.name)
