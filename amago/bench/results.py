"""What a measurement says, against which yardstick, and whether it is good enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from amago.bench.timing import Timing


@dataclass(frozen=True)
class Target:
    """A bound on the value or on the ratio."""

    of: Literal["value", "ratio"]
    relation: Literal["≥", "≤"]
    bound: float

    def __str__(self) -> str:
        return f"{self.of} {self.relation} {self.bound:,g}"

    def met(self, value: float | None, ratio: float | None) -> bool:
        """A number that could not be measured meets nothing."""
        measured = value if self.of == "value" else ratio
        if measured is None:
            return False
        return measured >= self.bound if self.relation == "≥" else measured <= self.bound


@dataclass(frozen=True)
class Result:
    """One number beside one yardstick."""

    case: str
    setting: str
    value: float | None
    """None where the case could not run; `note` says why."""
    unit: str
    yardstick: str | None = None
    ratio: float | None = None
    """Against the yardstick (docs/performance.md says which way for each)."""
    spread: float | None = None
    """Inter-quartile range of the value, in its unit."""
    disturbed: bool = False
    """Other processes took CPU during too many blocks."""
    target: Target | None = None
    note: str = ""

    @property
    def key(self) -> tuple[str, str, str, str | None]:
        """What makes two results, of two runs, the same measurement."""
        return (self.case, self.setting, self.unit, self.yardstick)

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.target.met(self.value, self.ratio)

    def to_json(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "setting": self.setting,
            "value": self.value,
            "unit": self.unit,
            "yardstick": self.yardstick,
            "ratio": self.ratio,
            "spread": self.spread,
            "disturbed": self.disturbed,
            "target": None if self.target is None else str(self.target),
            "met": self.met,
            "note": self.note,
        }


def rate(work: float, timing: Timing, *against: Timing) -> dict[str, Any]:
    """`work` per call as a value per second: keywords of a Result. A result is as disturbed as
    any timing that it rests on."""
    return _value(work / timing.seconds, timing, against)


def duration(timing: Timing, *against: Timing, scale: float = 1.0) -> dict[str, Any]:
    """Time per call as a value, in units of which a second has `scale`."""
    return _value(scale * timing.seconds, timing, against)


def _value(value: float, timing: Timing, against: tuple[Timing, ...]) -> dict[str, Any]:
    disturbed = any(each.disturbed for each in (timing, *against))
    return {"value": value, "spread": value * timing.spread, "disturbed": disturbed}
