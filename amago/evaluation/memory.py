"""The memory report: where an agent looks back to, what it needs, and what misleads it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any

from amago.agent.agent import Agent, resolve_context_length
from amago.envs.registry import MakeEnv, first_task
from amago.envs.settings import EnvSettings
from amago.evaluation.false_memory import false_memory
from amago.evaluation.play import PlaySettings, check_fits, make_lanes, make_policy
from amago.evaluation.reach import MOST_ROWS, attention_reach
from amago.evaluation.recall import recall_curve
from amago.nets.memory.feedforward import FeedforwardMemory
from amago.nets.memory.transformer import TransformerMemory

_NOT_OURS = "only environments that are made from their settings can be changed"


@dataclass(frozen=True)
class MemoryReport:
    """How much is played for each part."""

    recall_episodes: int = 64
    attention_rollouts: int = 4
    changed_worlds: int = 32

    def measure(
        self,
        agent: Agent,
        env: EnvSettings,
        settings: PlaySettings,
        *,
        make_env: MakeEnv | None = None,
    ) -> dict[str, Any]:
        """All parts as plain values; a part that does not apply says why."""
        agent.eval()
        env = env if make_env is not None else first_task(env)
        settings = replace(settings, episodes=self.recall_episodes)
        with contextlib.closing(make_lanes(env, settings, make_env)) as lanes:
            check_fits(agent.spec, lanes.spec)
            sees_all = not isinstance(agent.memory, FeedforwardMemory)
            context = resolve_context_length(agent.config, lanes.spec) if sees_all else 1
            recall = recall_curve(agent, lanes, settings, context)
            name = lanes.spec.name
        length = recall["whole"]["length"]
        if not sees_all:
            recall["why_not"] = "a feed-forward agent sees its current row alone"
        change = {"why_not": _NOT_OURS}
        if make_env is None:
            time = max(1, length // 2)
            change = false_memory(agent, env, settings, time, self.changed_worlds)
        return {
            "env": name,
            "memory": _name(agent),
            "context_length": context,
            "episodes": self.recall_episodes,
            "attention": self._attention(agent, env, settings, make_env, length),
            "recall": recall,
            "change": change,
        }

    def _attention(
        self,
        agent: Agent,
        env: EnvSettings,
        settings: PlaySettings,
        make_env: MakeEnv | None,
        length: int,
    ) -> dict[str, Any]:
        if not isinstance(agent.memory, TransformerMemory):
            return {"why_not": f"a {_name(agent)} memory has no attention"}
        if length + 1 > MOST_ROWS:
            return {"why_not": f"rollouts of {length} steps have too many weights to look at"}
        policy = make_policy(agent, settings)
        return attention_reach(policy, env, settings, self.attention_rollouts, make_env=make_env)


def _name(agent: Agent) -> str:
    """What the settings call the memory, or its class."""
    own = type(agent.memory).__module__.startswith("amago.nets.memory.")
    return agent.config.memory if own else type(agent.memory).__name__
