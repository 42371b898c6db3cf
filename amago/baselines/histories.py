"""Learning histories: memory-free agents that each learn one world of Dark Key-To-Door."""

from __future__ import annotations

import contextlib
from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from amago.baselines.settings import HistorySettings
from amago.envs.domains.dark_key_to_door import DarkKeyToDoor
from amago.envs.lanes import world_seed
from amago.envs.native import NativeVector
from amago.envs.registry import native_task
from amago.envs.settings import EnvSettings
from amago.rollout.driver import drive
from amago.rollout.recorder import Recorder
from amago.types import BARE_KEY, Array, Timestep, Trajectory

_World = tuple[int, ...]
"""Cells of key and door."""
_MOST_DRAWN = 100
"""Worlds drawn per history before held-out ones are declared to be all there are."""


@dataclass
class _Tables:
    """What the agents of all lanes know."""

    values: Array  # [N, states, actions]
    traces: Array  # [N, states, actions]
    state: Array  # [N]
    action: Array  # [N]


class _TabularLearners:
    """Q(λ) in every lane, which acts as it learns; implements amago.types.Policy.

    An agent sees its cell and whether it has the key, and remembers nothing of the trial: what it
    knows of its world is in its table of values [Sutton & Barto 2018, ch. 12].
    """

    def __init__(self, task: DarkKeyToDoor, settings: HistorySettings, seed: int) -> None:
        self.grid, self.horizon, self.settings = task.grid, task.horizon, settings
        self.rng = np.random.default_rng(seed)
        self.num_actions = 5

    def initial_state(self, num_lanes: int) -> _Tables:
        shape = (num_lanes, 2 * self.grid**2, self.num_actions)
        nobody = np.zeros(num_lanes, np.int64)
        return _Tables(np.zeros(shape), np.zeros(shape), nobody, nobody.copy())

    def act(self, timestep: Timestep, state: _Tables) -> tuple[Array, _Tables]:
        arrived = self._states(timestep)
        self._learn(timestep, state, arrived)
        lanes = np.arange(len(timestep))
        values = state.values[lanes, arrived]
        best = values + 1e-6 * self.rng.random(values.shape)  # ties are broken at random
        begin, end = self.settings.noise
        noise = begin + (end - begin) * timestep.time / self.horizon
        random = self.rng.random(len(timestep)) < noise
        drawn = self.rng.integers(self.num_actions, size=len(timestep))
        state.state, state.action = arrived, np.where(random, drawn, best.argmax(1))
        return state.action, state

    def select(self, state: _Tables, lanes: Array) -> _Tables:
        return _Tables(*(table[lanes] for table in vars(state).values()))

    def _states(self, timestep: Timestep) -> Array:
        obs = timestep.obs[BARE_KEY]
        cell = np.rint(obs[:, :2] * self.grid).astype(np.int64)
        states: Array = (cell[:, 0] * self.grid + cell[:, 1]) * 2 + (obs[:, 2] > 0)
        return states

    def _learn(self, timestep: Timestep, known: _Tables, arrived: Array) -> None:
        """From the transition into this row; the end of a trial is an end."""
        lanes = np.arange(len(timestep))
        fresh = timestep.time == 0
        known.values[fresh] = known.traces[fresh] = 0.0
        settings, ended = self.settings, timestep.first
        later = np.where(ended, 0.0, known.values[lanes, arrived].max(1))
        taken = known.values[lanes, known.state, known.action]
        error = timestep.prev_reward + settings.discount * later - taken
        known.traces *= settings.discount * settings.trace
        known.traces[lanes, known.state] = 0.0  # replacing traces
        known.traces[lanes, known.state, known.action] = 1.0
        known.traces[fresh] = 0.0
        known.values += (settings.learning_rate * error)[:, None, None] * known.traces
        known.traces[ended] = 0.0


def make_histories(
    env: EnvSettings, settings: HistorySettings, seed: int, held_out: Set[_World] = frozenset()
) -> list[Trajectory]:
    """One history per agent, each as long as a rollout, in worlds that are not held out."""
    task = source_task(env)
    seeds = _seeds(task, settings.count, seed, held_out)
    lanes = _Seeded(task, seeds)
    recorder = Recorder(lanes.spec, lanes.tasks)
    learners = _TabularLearners(task, settings, seed)
    finished: list[Trajectory] = []
    with contextlib.closing(lanes):
        for step in drive(lanes, learners):
            finished += recorder.add(step)
            if len(finished) == settings.count:
                return finished
    raise AssertionError("a driver never ends by itself")


def worlds_of(env: EnvSettings, world_seeds: Array) -> set[_World]:
    """The worlds of some seeds."""
    return _worlds(source_task(env), world_seeds)


class _Seeded(NativeVector):
    """Lanes that play the worlds of given seeds, one each."""

    def __init__(self, task: DarkKeyToDoor, seeds: Array) -> None:
        self._seeds = seeds
        super().__init__(task, len(seeds), 0, name="amago/DarkKeyToDoor-v0")

    def _begin(self, lanes: Array) -> Array:
        super()._begin(lanes)
        self._world_seed[lanes] = self._seeds[lanes]
        return self._seeds[lanes]


def _worlds(task: DarkKeyToDoor, world_seeds: Array) -> set[_World]:
    return {tuple(world[1:].ravel().tolist()) for world in task.worlds(world_seeds)}


def _seeds(task: DarkKeyToDoor, count: int, seed: int, held_out: Set[_World]) -> Array:
    found: list[int] = []
    for number in range(_MOST_DRAWN * count):
        drawn = world_seed(seed, number, 0)
        if not _worlds(task, np.array([drawn])) & held_out:
            found.append(drawn)
        if len(found) == count:
            return np.array(found, np.int64)
    raise ValueError(
        f"a {task.grid}×{task.grid} room has too few worlds beside the {len(held_out)} that the "
        "final test holds out; choose a larger --env.kwargs.grid, or a smaller "
        "--run.final-eval-episodes"
    )


def source_task(env: EnvSettings) -> DarkKeyToDoor:
    """The task in which memory-free agents learn."""
    task = native_task(env)
    if not isinstance(task, DarkKeyToDoor):
        raise ValueError(
            "learning histories are made in Dark Key-To-Door, whose cells a table can hold, got "
            f"{env.id}; name the preset dark-key-to-door, and leave out wrappers and trials"
        )
    return task
