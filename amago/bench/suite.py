"""All cases, in the order in which they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import chain

from amago.bench import learner, matmul, memory, relabeling, replay, rollout, scale, start
from amago.bench.conditions import Bench
from amago.bench.results import Result
from amago.bench.table import describe

_SIDE, _PRODUCTS = 1024, 5

CASES: dict[str, Callable[[Bench], Iterable[Result]]] = {
    "learner": learner.run,  # first: its first number takes a second
    "rollout": rollout.run,
    "replay": lambda bench: chain(replay.run(bench), relabeling.run(bench)),
    "memory": memory.run,
    "start": start.run,
    "scale": scale.run,
}


def run(case: str, bench: Bench) -> list[Result]:
    """One case, or all; every number is said as soon as it is known."""
    names = list(CASES) if case == "all" else [case]
    bench.say(f"this machine: {_machine_speed():.3g} GFLOP/s, products of float32 matrices")
    results: list[Result] = []
    said = ""
    for name in names:
        for result in CASES[name](bench):
            message = f"{result.case}, {result.setting}: {describe(result)}"
            if message != said:  # one number beside several yardsticks is said once
                bench.say(message)
            said = message
            results.append(result)
    return results


def _machine_speed() -> float:
    """A first number within seconds; cases measure it again beside their own."""
    multiply = matmul.multiplication(side=_SIDE)
    multiply()
    start = time.perf_counter()
    for _ in range(_PRODUCTS):
        multiply()
    return _PRODUCTS * matmul.flops(_SIDE) / (time.perf_counter() - start) / 1e9
