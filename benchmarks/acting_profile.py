"""Where a step of acting spends its time, by torch operation.

    python benchmarks/acting_profile.py [--lanes 24] [--dim 128] [--threads 1] [--epochs 20]

The loop of `amago bench rollout`, timed first without and then with torch's profiler, which makes
every operation look some microseconds longer than it is.
"""

from __future__ import annotations

import argparse
import contextlib
import time

from torch.profiler import ProfilerActivity, profile

from amago.bench.rollout import NARROW, WIDE, Loop, agent_policy, config_of
from amago.process import prepare_process

SIZES = {size.model_dim: size for size in (WIDE, NARROW)}


def seconds_per_step(loop: Loop, epochs: int) -> float:
    start = time.perf_counter()
    for _ in range(epochs):
        loop()
    return (time.perf_counter() - start) / (epochs * loop.horizon)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lanes", type=int, default=24)
    parser.add_argument("--dim", type=int, default=128, choices=sorted(SIZES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    prepare_process(options.threads)
    config = config_of(SIZES[options.dim])
    with contextlib.ExitStack() as opened:
        loop = Loop(config, options.lanes, agent_policy(config), opened)
        loop()
        plain = seconds_per_step(loop, options.epochs)
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            seconds_per_step(loop, 1)
    events = profiler.key_averages()
    calls = sum(event.count for event in events) / loop.horizon
    print(
        f"{options.lanes} lanes, d={options.dim}, {options.threads} threads: "
        f"{1e3 * plain:.2f} ms per step, {options.lanes / plain:,.0f} env steps/s, "
        f"{calls:.0f} operations"
    )
    inside = 0.0
    for event in sorted(events, key=lambda event: -event.self_cpu_time_total):
        micros = event.self_cpu_time_total / loop.horizon
        inside += micros
        if micros >= 5:
            print(f"{event.key:<34} {event.count / loop.horizon:6.1f} calls {micros:8.1f} µs")
    print(f"{'all operations, profiled':<34} {calls:6.1f} calls {inside:8.1f} µs")


if __name__ == "__main__":
    main()
