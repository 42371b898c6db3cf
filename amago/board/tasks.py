"""The tasks of the board, and the score at which each counts as learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.table import Table

from amago.checks import did_you_mean
from amago.rollout.scores import COMPARED, Score


@dataclass(frozen=True)
class BoardTask:
    """A preset with an environment, and its bar."""

    preset: str
    metric: Score
    bar: float
    minutes: float
    """Minutes of one idle core within which the bar should be reached."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Settings beside the preset's, as `amago train` takes them."""

    def is_reached(self, metrics: Mapping[str, Any]) -> bool:
        """Whether the evaluation in a row of metrics is at the bar."""
        score = metrics.get(self.metric.evaluation)
        return score is not None and float(score) >= self.bar


_RETURN, _SUCCESS = COMPARED["return"], COMPARED["success"]


def _popgym(name: str, bar: float) -> BoardTask:
    return BoardTask("popgym", _RETURN, bar, 15, {"env.id": name})


def _gym(name: str, bar: float) -> BoardTask:
    return BoardTask("gym", _RETURN, bar, 15, {"env.id": name})


TASKS = {
    "t-maze": BoardTask("t-maze", _RETURN, 1.0, 8),
    "dark-key-to-door": BoardTask("dark-key-to-door", _RETURN, 22, 6),
    "package-delivery": BoardTask("package-delivery", _SUCCESS, 0.9, 20),
    "maze-runner": BoardTask("maze-runner", _SUCCESS, 0.85, 120),
    "wind": BoardTask("wind", _SUCCESS, 0.95, 10),
    "masked-recall": BoardTask("masked-recall", _RETURN, 0.95, 10),
    "repeat-previous": _popgym("RepeatPreviousMedium", 0.9),
    "count-recall": _popgym("CountRecallEasy", 0.9),
    "bandit": _popgym("MultiarmedBanditEasy", 0.63),
    "position-only-cart-pole": _popgym("PositionOnlyCartPoleEasy", 0.99),
    "cart-pole": _gym("CartPole-v1", 490),
    "pendulum": _gym("Pendulum-v1", -160),
    "hidden-lunar-lander": _gym("hidden_lunar_lander:HiddenLunarLander-v0", 200),
    "card-game": _gym("card_game:CardGame-v0", 0.95),
    "hidden-point": _gym("hidden_point:HiddenPoint-v0", 17),
}
"""By name. The last three are examples (examples/*.py): run them from that folder."""


def choose(names: Sequence[str]) -> dict[str, BoardTask]:
    """The tasks of these names; without names, all of them."""
    for name in names:
        if name not in TASKS:
            hint = did_you_mean(name, TASKS)
            raise ValueError(f"the board has no task {name!r}; {hint}it has {', '.join(TASKS)}")
    return {name: TASKS[name] for name in names or TASKS}


def task_table(tasks: Mapping[str, BoardTask]) -> Table:
    """The tasks with their bars."""
    table = Table(title="Tasks of the board", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("task", no_wrap=True)
    table.add_column("preset or environment", overflow="fold")
    for name in ("measure", "bar", "minutes"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, task in tasks.items():
        trained = task.changes.get("env.id", task.preset)
        table.add_row(name, trained, task.metric.label, f"{task.bar:g}", f"{task.minutes:g}")
    return table
