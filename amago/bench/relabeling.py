"""What relabeling adds to the sampling path of the instruction domains, beside learning."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from amago.agent.agent import Agent, resolve_context_length
from amago.agent.update import Learner
from amago.bench.conditions import Bench
from amago.bench.results import Result, rate
from amago.bench.timing import interleave
from amago.config import Config
from amago.envs.catalogue import preset
from amago.envs.registry import make_vector
from amago.replay.relabel import StoreRelabeler
from amago.replay.sampler import Sampler
from amago.replay.settings import RelabelSettings
from amago.replay.store import TrajectoryStore
from amago.rollout.collect import collect
from amago.rollout.exploration import Exploration
from amago.rollout.random_policy import RandomPolicy
from amago.types import VectorEnv

_DOMAINS = ("package-delivery", "maze-runner")
_NUM_ROLLOUTS = 480
_KINDS = {
    "without relabeling": RelabelSettings(relabel="none"),
    "relabeling, goals alike": RelabelSettings(importance_sampling=False),
    "relabeling, rare goals first": RelabelSettings(),
}


def run(
    bench: Bench, domains: Sequence[str] = _DOMAINS, num_rollouts: int = _NUM_ROLLOUTS
) -> Iterator[Result]:
    """Every preset as it is trained; the rollouts are those of random play."""
    for name in domains:
        yield from _domain(name, preset(name), bench, num_rollouts)


def _domain(name: str, config: Config, bench: Bench, num_rollouts: int) -> list[Result]:
    bench.say(f"replay: relabeling {name}")
    env = make_vector(config.env, seed=0, num_lanes=config.env.num_lanes)
    with (
        contextlib.closing(env),
        tempfile.TemporaryDirectory(prefix="amago-bench-") as folder,
        TrajectoryStore(Path(folder) / "replay", env.spec, num_rollouts) as store,
    ):
        _play(env, config, store, num_rollouts)
        context = resolve_context_length(config, env.spec)
        samplers = {
            kind: Sampler(
                store, config.replay.batch_size, context, 0, StoreRelabeler(store, settings)
            )
            for kind, settings in _KINDS.items()
        }
        learner = Learner(Agent(env.spec, config), config.agent, config.optim)
        batch = samplers["relabeling, rare goals first"].batch(0)
        contenders: dict[str, Callable[[], Any]] = {
            kind: partial(_next_batch, sampler, itertools.count())
            for kind, sampler in samplers.items()
        }
        contenders["learner"] = lambda: learner.step(batch)
        timings = interleave(contenders, bench.effort)
    learning = timings["learner"]
    return [
        Result(
            "replay", f"{name}, {kind}", unit="rollouts/s", yardstick="learner",
            ratio=timings[kind].seconds / learning.seconds,
            **rate(config.replay.batch_size, timings[kind], learning),
        )
        for kind in _KINDS
    ]  # fmt: skip


def _play(env: VectorEnv, config: Config, store: TrajectoryStore, num_rollouts: int) -> None:
    """Fill a store with the rollouts of random play."""
    steps = env.spec.horizon or 1
    exploration = Exploration(
        config.exploration, env.spec, num_lanes=env.num_lanes, anneal_steps=steps,
        rollout_steps=steps, seed=0,
    )  # fmt: skip
    policy = RandomPolicy(env.spec, 0)
    while len(store) < num_rollouts:
        collect(env, policy, exploration, steps, store.append)


def _next_batch(sampler: Sampler, numbers: itertools.count[int]) -> None:
    sampler.batch(next(numbers))
