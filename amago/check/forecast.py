"""What training on an environment would cost, and that acting equals training there."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from amago.agent.agent import Agent, action_mask
from amago.agent.policy import batch_of
from amago.agent.update import Learner
from amago.check.environment import EnvReport
from amago.config import Config, override
from amago.envs.catalogue import preset
from amago.envs.in_process import Env, InProcessVector
from amago.process import forget_peak, peak_bytes
from amago.replay.codec import decode, encode
from amago.replay.collate import collate
from amago.replay.window import cut
from amago.rollout.driver import drive
from amago.rollout.recorder import Recorder
from amago.seeding import seed_torch
from amago.types import Array, Timestep, Trajectory, max_goals

_DEFAULT_CONTEXT = 128
"""Suggested for episodes that are longer, or never ended: an update that takes a fraction of a
second. More context is for those who know that it is needed."""
_TIMED_UPDATES = 3


@dataclass(frozen=True)
class Forecast:
    """What a run with the suggested settings needs."""

    launch: str
    """What starts training, but for the settings."""
    settings: dict[str, Any]
    """Changes to the gym preset, by dotted name."""
    context_length: int
    trajectory_bytes: int
    """On disk, of a rollout as long as the horizon, or else as those of random play."""
    replay_bytes: int
    """On disk, with the replay full."""
    update_seconds: float
    total_seconds: float
    """Of all updates that the gym preset makes."""
    peak_bytes: int
    """Most memory that this process held while it acted and updated."""
    acting_error: float
    """Largest difference between states while acting and while training."""

    def lines(self) -> list[tuple[str, str]]:
        return [
            ("disk", f"{_size(self.trajectory_bytes)} per trajectory, {_size(self.replay_bytes)} "
                     "for a full replay"),
            ("update", f"{self.update_seconds:.3g} s at context length {self.context_length}, "
                       f"{_size(self.peak_bytes)} of memory"),
            ("training", f"{self.total_seconds / 60:.3g} minutes for all updates of the gym "
                         "preset"),
            ("acting", f"equals training to {self.acting_error:.1g}"),
            ("suggested", _command(self.launch, self.settings)),
        ]  # fmt: skip


def _command(launch: str, settings: dict[str, Any]) -> str:
    """How to start training with some settings: on the command line, or from Python."""
    if launch.startswith("amago train"):
        flags = [f"--{key.replace('_', '-')} {value}" for key, value in settings.items()]
        return " ".join([launch, *flags])
    # The arguments of gymnasium.make are for ids; whoever makes the environment wraps it.
    changes = {key: value for key, value in settings.items() if not key.startswith("env.kwargs.")}
    return f"amago.train(amago.override(amago.preset('gym'), {changes}), {launch})"


def _suggest(report: EnvReport) -> dict[str, Any]:
    """Values for the gym preset that fit the environment."""
    assert report.spec is not None
    horizon = report.spec.horizon or report.longest
    context = min(max(horizon, 1), _DEFAULT_CONTEXT) if report.episodes else _DEFAULT_CONTEXT
    settings: dict[str, Any] = {"replay.context_length": context}
    largest = max(abs(value) for value in report.reward_range)
    if largest > 0:
        # Returns of order ten to a hundred, whatever the rewards are.
        settings["agent.reward_scale"] = float(f"{min(10.0 / largest, 100.0):.0e}")
    if report.step_seconds > 1e-3:
        settings["env.num_workers"] = 2
    if not report.episodes and report.spec.horizon is None:
        settings["env.kwargs.max_episode_steps"] = 1000
    return settings


def forecast(
    make_env: Callable[[], Env], report: EnvReport, seed: int, launch: str
) -> Forecast | None:
    """Act and update with the suggested settings; None where an update was not finite."""
    settings = _suggest(report)
    config = override(preset("gym"), {k: v for k, v in settings.items() if "env." not in k})
    context = settings["replay.context_length"]
    seed_torch(seed, "check")
    forget_peak()
    vector = InProcessVector(make_env, 1, seed)
    try:
        agent = Agent(vector.spec, config)
        trajectories, error = _act(vector, agent, context)
    finally:
        vector.close()
    limit = settings.get("env.kwargs.max_episode_steps")
    size = _disk(trajectories, vector.spec.horizon or limit or report.mean_length or context)
    learner = Learner(agent, config.agent, config.optim)
    seconds = _time_updates(learner, config, _stretch(trajectories, context), seed)
    if learner.skipped:
        return None
    return Forecast(
        launch=launch,
        settings=settings,
        context_length=context,
        trajectory_bytes=size,
        replay_bytes=size * config.replay.capacity,
        update_seconds=seconds,
        total_seconds=seconds * config.run.epochs * config.run.updates_per_epoch,
        peak_bytes=peak_bytes(),
        acting_error=error,
    )


def _disk(trajectories: list[Trajectory], num_steps: float) -> int:
    """Bytes of a trajectory of so many steps: a longest one's, and its head apart."""
    longest = max(trajectories, key=lambda trajectory: trajectory.num_steps)
    head, whole = (len(encode(cut(longest, 0, rows + 1))) for rows in (1, longest.num_steps))
    per_step = (whole - head) / max(longest.num_steps - 1, 1)
    return int(head + per_step * (num_steps - 1))


class _Witness:
    """Acts like AgentPolicy, and keeps the states that it acted on."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.states = agent.eval(), list[torch.Tensor]()

    def initial_state(self, num_lanes: int) -> Any:
        return self.agent.memory.initial_state(num_lanes)

    @torch.no_grad()
    def act(self, timestep: Timestep, state: Any) -> tuple[Array, Any]:
        agent, batch = self.agent, batch_of(timestep, torch.device("cpu"))
        hidden, state = agent.memory.step(agent.encoder(batch), batch.time, state)
        self.states.append(hidden[0].clone())
        policy = agent.actor.at_discount(hidden, agent.acting_index, action_mask(batch.obs))
        return policy.sample().numpy(), state

    def select(self, state: Any, lanes: Array) -> Any:
        return self.agent.memory.select(state, lanes)


def _act(vector: InProcessVector, agent: Agent, context: int) -> tuple[list[Trajectory], float]:
    """A few rollouts of the untrained agent, none longer than the context, and how far the
    states of the first one are from those that training would compute."""
    recorder, witness = Recorder(vector.spec, vector.tasks), _Witness(agent)
    found: list[Trajectory] = []
    for number, step in enumerate(drive(vector, witness)):
        found += recorder.add(step)
        if number >= context:
            found += recorder.cut()
            break
    first = decode(encode(found[0]))
    with torch.no_grad():
        trained = agent.states(collate([first], [0], max_goals(agent.spec)))
    acted = torch.stack(witness.states[: first.num_steps])
    return found, float((acted - trained[:-1]).abs().max())


def _stretch(trajectories: list[Trajectory], context: int) -> Trajectory:
    """Rows of short rollouts, again and again, until they fill a window: for timing alone."""
    rows = sum(t.num_steps + 1 for t in trajectories)
    parts = trajectories * -(-(context + 1) // rows)

    def joined(arrays: Iterable[Array]) -> Array:
        return np.concatenate(list(arrays))[: context + 1]

    return Trajectory(
        {key: joined(t.obs[key] for t in parts) for key in parts[0].obs},
        joined(t.prev_action for t in parts),
        joined(t.prev_reward for t in parts),
        joined(t.first for t in parts),
        joined(t.terminal for t in parts),
        instruction=parts[0].instruction,
        progress=joined(t.progress for t in parts if t.progress is not None)
        if parts[0].progress is not None
        else None,
    )


def _time_updates(learner: Learner, config: Config, window: Trajectory, seed: int) -> float:
    """Seconds per update on a batch of full windows, the first update apart."""
    seed_torch(seed, "check updates")
    rows = config.replay.batch_rows
    size = math.ceil(rows / window.num_steps) if rows else config.replay.batch_size
    batch = collate([window] * size, [0] * size, max_goals(learner.agent.spec))
    learner.step(batch)
    begin = time.perf_counter()
    for _ in range(_TIMED_UPDATES):
        learner.step(batch)
    return (time.perf_counter() - begin) / _TIMED_UPDATES


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError
