"""All cases, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from amago.bench import learner, memory, relabeling, replay, rollout, scale, start
from amago.bench.conditions import Bench
from amago.bench.results import Result

CASES: dict[str, Callable[[Bench], list[Result]]] = {
    "rollout": rollout.run,
    "learner": learner.run,
    "replay": lambda bench: replay.run(bench) + relabeling.run(bench),
    "memory": memory.run,
    "start": start.run,
    "scale": scale.run,
}


def run(case: str, bench: Bench) -> list[Result]:
    """One case, or all."""
    names = list(CASES) if case == "all" else [case]
    return [result for name in names for result in CASES[name](bench)]
