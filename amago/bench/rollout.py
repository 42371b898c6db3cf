"""How fast experience is collected: acting, sampling, recording and the commit to the replay."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy
from amago.bench.conditions import Bench
from amago.bench.plain.agent import PlainAgent
from amago.bench.plain.policy import PlainPolicy
from amago.bench.results import Result, Target, rate
from amago.bench.timing import interleave
from amago.config import Config, override
from amago.envs.catalogue import preset
from amago.envs.registry import make_vector
from amago.replay.store import TrajectoryStore
from amago.rollout.collect import collect
from amago.rollout.exploration import Exploration
from amago.rollout.random_policy import RandomPolicy
from amago.types import EnvSpec, Policy

_LANES = (24, 64, 128, 256, 512, 1024)
"""Among these the best is sought."""


@dataclass(frozen=True)
class _Acting:
    """An agent that acts in T-Maze; the context covers the rollout."""

    model_dim: int
    num_heads: int
    encoder: tuple[int, ...]
    head_hidden: tuple[int, ...]
    corridor: int = 100
    num_layers: int = 2


WIDE = _Acting(128, 8, (128, 128, 128), (256, 256))
NARROW = _Acting(64, 4, (64, 64), (128, 128))


def config_of(acting: _Acting) -> Config:
    return override(
        preset("t-maze"),
        {
            "env.kwargs": {"corridor": acting.corridor},
            "memory": "transformer",
            "encoder.hidden": acting.encoder,
            "transformer.model_dim": acting.model_dim,
            "transformer.num_heads": acting.num_heads,
            "transformer.num_layers": acting.num_layers,
            "heads.hidden": acting.head_hidden,
            "replay.context_length": None,
        },
    )


def run(
    bench: Bench,
    wide: _Acting = WIDE,
    narrow: _Acting = NARROW,
    lanes: Sequence[int] = _LANES,
    many: int = 512,
) -> Iterator[Result]:
    few = lanes[0]
    with contextlib.ExitStack() as opened:
        bench.say(f"rollout: {few} lanes")
        yield from _beside_yardsticks(wide, few, 12_000, bench, opened, plain=True)
        bench.say(f"rollout: the best of {', '.join(map(str, lanes))} lanes")
        yield _best(wide, lanes, 40_000, bench, opened)
        bench.say(f"rollout: {many} lanes, d={narrow.model_dim}")
        yield from _beside_yardsticks(narrow, many, 70_000, bench, opened, plain=False)


def _beside_yardsticks(
    acting: _Acting, lanes: int, least: float, bench: Bench, opened: contextlib.ExitStack,
    plain: bool,
) -> list[Result]:  # fmt: skip
    """Against the same collection without any network, and against the obvious implementation."""
    config = config_of(acting)
    loops = {
        "amago": Loop(config, lanes, agent_policy(config, bench.device), opened),
        "no network": Loop(config, lanes, lambda spec: RandomPolicy(spec, 0), opened),
    }
    if plain:
        # Without a cache a step costs what the whole history costs: minutes with many lanes.
        loops["plain"] = Loop(
            config,
            lanes,
            lambda spec: PlainPolicy(PlainAgent(spec, config).to(bench.device)),
            opened,
        )
    timings = interleave(loops, bench.effort)
    mine = timings.pop("amago")
    return [
        Result(
            "rollout", f"{_describe(acting)}, {lanes} lanes", unit="env steps/s", yardstick=name,
            ratio=timing.seconds / mine.seconds,
            target=Target("value", "≥", least) if name == "no network" else None,
            **rate(loops["amago"].steps, mine, timing),
        )
        for name, timing in timings.items()
    ]  # fmt: skip


def _best(
    acting: _Acting, lanes: Sequence[int], least: float, bench: Bench, opened: contextlib.ExitStack
) -> Result:
    config = config_of(acting)
    policy = agent_policy(config, bench.device)
    loops = {str(count): Loop(config, count, policy, opened) for count in lanes}
    timings = interleave(loops, bench.effort)
    rates = {name: loops[name].steps / timing.seconds for name, timing in timings.items()}
    best = max(rates, key=lambda name: rates[name])
    base = str(lanes[0])
    return Result(
        "rollout", f"{_describe(acting)}, best number of lanes", unit="env steps/s",
        yardstick=f"{base} lanes", ratio=rates[best] / rates[base],
        target=Target("value", "≥", least), note=f"{best} lanes",
        **rate(loops[best].steps, timings[best], timings[base]),
    )  # fmt: skip


def _describe(acting: _Acting) -> str:
    return f"T-Maze {acting.corridor}, d={acting.model_dim}, {acting.num_layers} layers"


def agent_policy(config: Config, device: str = "cpu") -> Callable[[EnvSpec], Policy]:
    def make(spec: EnvSpec) -> Policy:
        torch.manual_seed(0)
        return AgentPolicy(Agent(spec, config).to(device), seed=0)

    return make


class Loop:
    """A contender: one epoch of collecting, from reset to committed rollouts."""

    def __init__(
        self,
        config: Config,
        lanes: int,
        make_policy: Callable[[EnvSpec], Any],
        opened: contextlib.ExitStack,
    ) -> None:
        self.env = make_vector(config.env, seed=0, num_lanes=lanes)
        opened.callback(self.env.close)
        spec = self.env.spec
        assert spec.horizon is not None
        self.horizon = spec.horizon
        self.steps = lanes * spec.horizon
        """Steps of all lanes per call."""
        self.policy: Policy = make_policy(spec)
        self.exploration = Exploration(
            config.exploration, spec, num_lanes=lanes, anneal_steps=1_000_000,
            rollout_steps=spec.horizon, seed=0,
        )  # fmt: skip
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="amago-bench-"))
        self.store = TrajectoryStore(Path(folder) / "replay", spec, capacity=10_000)
        opened.callback(self.store.close)

    def __call__(self) -> None:
        _, recorded = collect(
            self.env, self.policy, self.exploration, self.horizon, self.store.append
        )
        assert recorded == self.steps
