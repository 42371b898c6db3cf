"""What happens when a remembered fact is made false: the world changes, and nobody says so."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy
from amago.envs.changes import Change, change_of, subject_of, why_not
from amago.envs.registry import first_task
from amago.envs.settings import EnvSettings
from amago.evaluation.play import PlaySettings, make_lanes, make_policy, play
from amago.types import Array, Policy, Step, Timestep, VectorEnv


class _WipedPolicy:
    """A player whose memory is emptied at one step of every rollout; implements Policy."""

    def __init__(self, player: Policy, time: int) -> None:
        self.player, self.time = player, time

    def initial_state(self, num_lanes: int) -> Any:
        return self.player.initial_state(num_lanes)

    def act(self, timestep: Timestep, state: Any) -> tuple[Array, Any]:
        if len(timestep) != 1:
            raise ValueError(f"memory is wiped in one lane at a time, got {len(timestep)}")
        if timestep.time[0] == self.time:
            state = self.player.initial_state(1)
        return self.player.act(timestep, state)

    def select(self, state: Any, lanes: Array) -> Any:
        return self.player.select(state, lanes)


@dataclass
class _Changing:
    """Watches one lane: changes its world at one step, and adds up what is earned after it."""

    lanes: VectorEnv
    time: int
    change: Change | None
    seed: int
    earned: float = 0.0
    reached: bool = False
    over: bool = False

    def __call__(self, step: Step) -> None:
        for rows, _ in step.parts():
            if self.over:
                return
            if self.reached:
                self.earned += float(rows.prev_reward[0])
            self.over = bool(rows.last[0])
            if rows.time[0] == self.time and not self.over:
                self.reached = True
                if self.change is not None:
                    self.change.apply(subject_of(self.lanes), np.random.default_rng(self.seed))


def false_memory(
    agent: Agent, env: EnvSettings, settings: PlaySettings, time: int, worlds: int
) -> dict[str, Any]:
    """Return after step `time` with the world changed there or not, and memory wiped or kept."""
    env = replace(first_task(env), num_workers=0)
    with contextlib.closing(make_lanes(env, settings.one_rollout())) as lane:
        change = change_of(env.id) if subject_of(lane) is not None else None
        if change is None:
            return {"why_not": why_not(env.id)}
        arms = {
            f"{world}, {memory}": _earned(
                agent, lane, settings, time, worlds, change if world == "changed" else None,
                wiped=memory == "wiped",
            )
            for world in ("same", "changed")
            for memory in ("kept", "wiped")
        }  # fmt: skip
    counted = len(arms["same, kept"])
    if not counted:
        return {"why_not": f"no rollout was longer than {time} steps"}
    return {"what": change.text, "time": time, "worlds": counted,
            "arms": {name: _mean(earned) for name, earned in arms.items()},
            "misled": _mean(arms["changed, wiped"] - arms["changed, kept"])}  # fmt: skip


def _earned(
    agent: Agent, lane: VectorEnv, settings: PlaySettings, time: int, worlds: int,
    change: Change | None, *, wiped: bool,
) -> Array:  # fmt: skip
    """Return of each world after the moment; worlds whose rollout ended before it are left out.

    Up to there all arms are alike: the same world, the same actions.
    """
    earned = []
    for number in range(worlds):
        seeded = replace(settings, action_seed=settings.action_seed + number)
        player: AgentPolicy | _WipedPolicy = make_policy(agent, seeded)
        player = _WipedPolicy(player, time) if wiped else player
        watcher = _Changing(lane, time, change, seed=number)
        play(player, lane, 1, first_rollout=number, watchers=[watcher])
        if watcher.reached:
            earned.append(watcher.earned)
    return np.array(earned)


def _mean(values: Array) -> dict[str, float]:
    return {"mean": float(values.mean()), "error": float(values.std() / math.sqrt(len(values)))}
