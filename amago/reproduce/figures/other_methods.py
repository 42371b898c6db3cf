"""Other methods beside amago's own: the same environments, inputs, final test and minutes."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

_TASKS = {
    "T-Maze 100": ("t-maze", (), 8),
    "Dark Key-To-Door": ("dark-key-to-door", (), 8),
    "RepeatPreviousMedium": ("popgym", ("env.id=popgym/RepeatPreviousMedium",), 8),
    "hidden velocity": ("popgym", ("env.id=popgym/PositionOnlyCartPoleEasy",), 15),
    "Package Delivery": ("package-delivery", (), 20),
}
"""Preset, settings and minutes of each."""
_METHODS = {
    "full": "",
    "separate memories": "separate-memory",
    "no memory": "no-memory",
}
_UNTIL_TIME_IS_UP = "run.epochs=100000"
"""Epochs of a baseline take another time than ours: the minutes end its run."""
FOUR_HOURS = (_UNTIL_TIME_IS_UP, "run.max_minutes=240")
"""About what ours takes for 100,000 updates in a maze."""


def _arms() -> tuple[Variant, ...]:
    arms = []
    for task, (preset, chosen, minutes) in _TASKS.items():
        budget = (f"run.max_minutes={minutes}",)
        own = {**_METHODS, **({"GCSL": "gcsl"} if task == "Package Delivery" else {})}
        arms += [
            Variant(name, ablate, chosen, task, preset, on_cpu=budget)
            for name, ablate in own.items()
        ]
        arms.append(
            Variant(
                "Recurrent PPO",
                "",
                chosen,
                task,
                preset,
                baseline="recurrent-ppo",
                on_cpu=(*budget, _UNTIL_TIME_IS_UP),
            )
        )
    return tuple(arms)


ENTRY = Experiment(
    paper="the methods of others",
    claim="memory-is-learned-sooner-than-by-others",
    question="How far do other methods come in the same minutes?",
    measure="return",
    preset="t-maze",
    arms=_arms(),
    control="Recurrent PPO",
    holds=(
        "full > Recurrent PPO, intervals apart",
        "full >= separate memories",
        "Package Delivery: full > GCSL, intervals apart",
    ),
    caveats=(
        "Recurrent PPO has one set of settings for all tasks, see docs/baselines.md.",
        "Minutes are those of one thread; runs beside others count them as slower ones.",
    ),
)
