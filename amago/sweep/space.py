"""What `amago tune` searches: settings with the values that they may take."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.trial import Trial

_RANGE = re.compile(r"(?P<low>[^:,]+?)\.\.(?P<high>[^:,]+?)(?P<log>:log)?")


@dataclass(frozen=True)
class _Range:
    """Numbers between two ends; whole ones where both ends are."""

    key: str
    low: float
    high: float
    log: bool

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def examples(self) -> tuple[str, ...]:
        """Values that a setting must take: both ends, and a fraction if there are any."""
        if self.whole:
            return str(self.low), str(self.high)
        between = self.low + (self.high - self.low) / math.pi
        return tuple(f"{value:.6g}" for value in (self.low, between, self.high))

    def draw(self, trial: Trial) -> str:
        """The trial's value, as the command line takes it."""
        if self.whole:
            return str(trial.suggest_int(self.key, int(self.low), int(self.high), log=self.log))
        return f"{trial.suggest_float(self.key, self.low, self.high, log=self.log):.6g}"


@dataclass(frozen=True)
class _Choice:
    """One of some values."""

    key: str
    values: tuple[str, ...]

    def examples(self) -> tuple[str, ...]:
        return self.values

    def draw(self, trial: Trial) -> str:
        return str(trial.suggest_categorical(self.key, self.values))


Dimension = _Range | _Choice


def parse_space(assignments: Sequence[str]) -> list[Dimension]:
    """Settings given as key=low..high, key=low..high:log or key=a,b,c."""
    space: dict[str, Dimension] = {}
    for assignment in assignments:
        key, _, text = (part.strip() for part in assignment.partition("="))
        key = key.lstrip("-").replace("-", "_")
        if not key or not text:
            raise _wrong(assignment)
        if key in space:
            raise ValueError(f"--over got {key} twice; give its values once")
        space[key] = _dimension(key, text, assignment)
    if not space:
        raise ValueError(
            "expected what to search, such as --over optim.learning_rate=1e-5..1e-2:log"
        )
    return list(space.values())


def _dimension(key: str, text: str, assignment: str) -> Dimension:
    match = _RANGE.fullmatch(text)
    if match is None:
        values = tuple(dict.fromkeys(value.strip() for value in text.split(",")))
        if len(values) < 2 or not all(values) or ".." in text:
            raise _wrong(assignment)
        return _Choice(key, values)
    try:
        low, high = (_number(match[name]) for name in ("low", "high"))
    except ValueError:
        raise _wrong(assignment) from None
    if not low < high or (match["log"] and low <= 0):
        raise ValueError(
            f"--over {assignment} needs its lower end first"
            + (", and above 0 for :log" if match["log"] else "")
        )
    return _Range(key, low, high, bool(match["log"]))


def _number(text: str) -> float:
    return int(text) if re.fullmatch(r"\s*-?\d+\s*", text) else float(text)


def _wrong(assignment: str) -> ValueError:
    return ValueError(
        f"--over expects key=low..high, key=low..high:log or key=a,b,c, got {assignment!r}; for "
        "example --over optim.learning_rate=1e-5..1e-2:log"
    )
