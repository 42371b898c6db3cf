"""Long contexts: what learning from them takes, and what acting at the end of them costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy
from amago.bench.conditions import Bench
from amago.bench.learner import peak_result, update_payload, utilisation
from amago.bench.processes import in_child
from amago.bench.results import Result, Target, duration
from amago.bench.synthetic import OBS_SIZE, Size, config_of, spec_of
from amago.bench.timing import Effort, Timing, interleave
from amago.types import Timestep

_ONCE = Effort(rounds=1, max_rounds=1, block_seconds=0.0, warm_up=False)


@dataclass(frozen=True)
class _LongCase:
    """One window of very many transitions."""

    length: int
    most_seconds: float | None
    most_gb: float
    slow: bool = False
    """Takes minutes: one update is measured, and none in a quick run."""


_LONG = (_LongCase(10_000, 2.5, 2.0), _LongCase(100_000, None, 12.0, slow=True))
_SIZE = Size(128, 2, (128, 128, 128), 1, 10_000)
_ACTING = (1_000, 10_000)
_MOST_COSTLY = 3.0
"""A step at the longer context may cost this many times one at the shorter."""
_STILL_THE_SAME = 1.1
"""Up to this ratio, two costs count as equal."""


def run(
    bench: Bench,
    long: Sequence[_LongCase] = _LONG,
    acting: tuple[int, int] = _ACTING,
    size: Size = _SIZE,
) -> Iterator[Result]:
    for case in long:
        if bench.quick and case.slow:
            bench.say(f"memory: 1x{case.length:,} takes minutes and is left out of a quick run")
            continue
        yield from _learning(case, bench, replace(size, context_length=case.length))
    yield from _acting(bench, acting, size)


def _learning(case: _LongCase, bench: Bench, size: Size) -> list[Result]:
    setting = f"learning, d={size.model_dim}, {size.num_layers} layers, 1x{case.length:,}"
    bench.say(f"memory: {setting}")
    effort = _ONCE if case.slow else bench.effort
    answer = in_child("update", update_payload(size, bench, effort, 1.5 * case.most_gb))
    peak = peak_result("memory", setting, answer, case.most_gb)
    target = None if case.most_seconds is None else Target("value", "≤", case.most_seconds)
    if "error" in answer:
        failed = Result(
            "memory", setting, None, "s/update", "matmul", target=target, note=answer["error"]
        )
        return [failed, peak]
    timings = {name: Timing(**fields) for name, fields in answer["timings"].items()}
    share = utilisation(size, [case.length + 1], timings["amago"], timings["matmul"])
    speed = Result(
        "memory", setting, unit="s/update", yardstick="matmul", ratio=share, target=target,
        **duration(timings["amago"], timings["matmul"]),
    )  # fmt: skip
    return [speed, peak]


def _acting(bench: Bench, contexts: tuple[int, int], size: Size) -> list[Result]:
    """Steps of one lane whose cache is full and slides."""
    short, long = contexts
    contenders = {}
    for name, context, steps in (
        ("short", short, short),
        ("slid", short, 10 * short),
        ("long", long, long),
    ):
        bench.say(f"memory: acting, filling a context of {context:,} with {steps:,} steps")
        contenders[name] = _actor(
            replace(size, context_length=context, horizon=False), steps, bench.device
        )
    bench.say("memory: acting")
    timings = interleave(contenders, bench.effort)
    base = timings["short"]

    def result(name: str, setting: str, yardstick: str, most: float) -> Result:
        timing = timings[name]
        return Result(
            "memory", f"acting, one lane, {setting}", unit="ms/step", yardstick=yardstick,
            ratio=timing.seconds / base.seconds, target=Target("ratio", "≤", most),
            **duration(timing, base, scale=1000.0),
        )  # fmt: skip

    return [
        result("long", f"context {long:,}, sliding", f"context {short:,}", _MOST_COSTLY),
        result("slid", f"context {short:,}, slid 10 times", "slid once", _STILL_THE_SAME),
    ]


def _actor(size: Size, steps: int, device: str) -> Callable[[], None]:
    """A contender that takes one step more after `steps` steps."""
    torch.manual_seed(0)
    policy = AgentPolicy(Agent(spec_of(size), config_of(size)).to(device), seed=0)
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((1, OBS_SIZE), np.float32)
    flag, reward = np.zeros(1, np.bool_), np.zeros(1, np.float32)
    action = np.zeros(1, np.int64)
    state = policy.initial_state(1)
    time = np.zeros(1, np.int64)

    def step() -> None:
        nonlocal state, time
        rows = Timestep(
            {"observation": obs}, action, reward, time, time == 0, flag, flag,
            world_seed=np.zeros(1, np.int64),
        )  # fmt: skip
        _, state = policy.act(rows, state)
        time = time + 1

    for _ in range(steps):
        step()
    return step
