"""How worker processes scale: steps per second of the same lanes, in process and in workers.

    python benchmarks/workers.py [--ids amago/Crafter-v0 ...] [--workers 0 1 2] [--rounds 7]

All vectors are open at once and step in turn, block by block, with random actions; reported are
medians over rounds, and ratios to the first. Rollouts that end start from scratch within the block.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from statistics import median

import numpy as np

from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.rollout.random_policy import random_actions
from amago.types import VectorEnv


def rate(vector: VectorEnv, steps: int, rng: np.random.Generator) -> float:
    """Lane steps per second over one block."""
    rows = vector.reset()
    start = time.perf_counter()
    for _ in range(steps):
        rows = vector.step(random_actions(rng, vector.spec.action, rows)).rows
    return steps * vector.num_lanes / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--ids", nargs="+", default=["amago/Crafter-v0", "amago/HalfCheetahVelocity-v0"]
    )
    parser.add_argument("--workers", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--lanes", type=int, default=24)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    for name in options.ids:
        with contextlib.ExitStack() as opened:
            vectors = []
            for workers in options.workers:
                settings = EnvSettings(id=name, num_workers=workers)
                vector = make_vector(settings, seed=0, num_lanes=options.lanes)
                opened.callback(vector.close)
                vectors.append(vector)
            rng = np.random.default_rng(0)
            rounds = [
                [rate(vector, options.steps, rng) for vector in vectors]
                for _ in range(options.rounds)
            ]
        medians = [median(rates) for rates in zip(*rounds, strict=True)]
        for workers, value in zip(options.workers, medians, strict=True):
            what = f"{workers} workers" if workers else "in process"
            print(f"{name:<32} {what:<12} {value:>8,.0f} steps/s   {value / medians[0]:.2f}×")


if __name__ == "__main__":
    main()
