"""Rollouts of goal domains, and the real environment that plays them again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from amago.envs.catalogue import make_task
from amago.envs.domains.package_delivery import PackageDelivery
from amago.envs.in_process import InProcessVector
from amago.envs.instructions import FollowInstructions
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.tasks.goal_task import GoalTask
from amago.goals import GoalSpec
from amago.rollout.driver import drive
from amago.rollout.recorder import Recorder
from amago.types import ActionSpec, Array, EnvSpec, ObsSpec, Step, Timestep, Trajectory

DELIVERY = EnvSettings(id="amago/PackageDelivery-v0", kwargs={"road": 14, "horizon": 70})
MAZE = EnvSettings(id="amago/MazeRunner-v0", kwargs={"size": 9, "horizon": 90})
REWIRED = EnvSettings(
    id="amago/MazeRunner-v0",
    kwargs={"size": 7, "horizon": 60, "rewired": True, "continuous": True, "position": False},
)
DOMAINS = {"delivery": DELIVERY, "maze": MAZE, "rewired": REWIRED}


class Wanderer:
    """Random play."""

    def __init__(self, spec: EnvSpec, seed: int) -> None:
        self.spec, self.rng = spec, np.random.default_rng(seed)

    def initial_state(self, num_lanes: int) -> None:
        return None

    def act(self, timestep: Timestep, state: None) -> tuple[Array, None]:
        count, size = len(timestep), self.spec.action.size
        if self.spec.action.kind == "continuous":
            return self.rng.uniform(-1.0, 1.0, (count, size)).astype(np.float32), None
        return self.rng.integers(size, size=count), None


class Courier:
    """Knows its road but is careless: delivers elsewhere, misses places, errs at forks."""

    def __init__(self, task: PackageDelivery, seed: int) -> None:
        self.task, self.rng = task, np.random.default_rng(seed)

    def initial_state(self, num_lanes: int) -> None:
        return None

    def act(self, timestep: Timestep, state: None) -> tuple[Array, None]:
        task, lanes = self.task, np.arange(len(timestep))
        luck = self.rng.random(len(lanes))
        asked = task.instruction[lanes, task.progress, 0] == task.position
        good = np.where(
            luck < np.where(asked, 0.5, 0.15), task.drop, task.side[lanes, task.position]
        )
        return np.where(luck > 0.8, self.rng.integers(8, size=len(lanes)), good), None


def rollouts(settings: EnvSettings, number: int, seed: int, lanes: int = 16) -> list[Trajectory]:
    env = make_vector(settings, seed=seed, num_lanes=lanes)
    task = getattr(env, "task", None)
    knows = isinstance(task, PackageDelivery)
    policy = Courier(task, seed) if knows else Wanderer(env.spec, seed)
    recorder, finished = Recorder(env.spec, env.tasks), []
    for step in drive(env, policy):
        finished += recorder.add(step)
        if len(finished) >= number:
            return finished[:number]
    raise AssertionError


@cache
def some_rollouts(domain: str) -> tuple[Trajectory, ...]:
    """A few hundred rollouts, of which some completed none, some or all of their goals."""
    return tuple(rollouts(DOMAINS[domain], 400, seed=5, lanes=64))


def play(env: gym.Env[Any, Any], trajectory: Trajectory) -> Trajectory:
    """The trajectory's world, instruction and actions in a real environment."""
    assert trajectory.instruction is not None
    obs, info = env.reset(
        seed=trajectory.world_seed, options={"instruction": trajectory.instruction}
    )
    rows = [(obs, 0.0, False, info)]
    for action in trajectory.prev_action[1:]:
        obs, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        rows.append((obs, float(reward), terminated, info))
        if terminated:
            break
    seen = trajectory.obs["observation"].dtype
    achieved = [info["achieved"] for *_, info in rows]
    total = [goal for goals in achieved for goal in goals]
    return replace(
        trajectory,
        obs={"observation": np.array([obs for obs, *_ in rows], seen)},
        prev_action=trajectory.prev_action[: len(rows)],
        prev_reward=np.array([reward for _, reward, *_ in rows], np.float32),
        first=np.arange(len(rows)) == 0,
        terminal=np.array([terminated for *_, terminated, _ in rows]),
        instruction=np.array(info["instruction"], trajectory.instruction.dtype),
        progress=np.array([info["progress"] for *_, info in rows], np.uint8),
        achieved=(
            np.cumsum([0, *map(len, achieved)]),
            np.array(total, trajectory.instruction.dtype).reshape(
                -1, trajectory.instruction.shape[1]
            ),
        ),
    )


def play_batched(settings: EnvSettings, trajectories: list[Trajectory]) -> list[dict[str, Array]]:
    """The same for many at once, in the natively batched task: reward, terminal, progress."""
    task = make_task(settings.id, **settings.kwargs)
    assert isinstance(task, GoalTask)
    task.allocate(len(trajectories))
    task.reset_lanes(np.arange(len(trajectories)), np.array([t.world_seed for t in trajectories]))
    horizon = max(t.num_steps for t in trajectories)
    actions = []
    for lane, trajectory in enumerate(trajectories):
        task.instruct(lane, trajectory.instruction)
        taken = trajectory.prev_action[1:]
        rest = np.zeros((horizon - len(taken), *taken.shape[1:]), taken.dtype)
        actions.append(np.concatenate([taken, rest]))
    columns = [(*task.step(action)[:2], task.progress.copy()) for action in np.stack(actions, 1)]
    reward, terminal, progress = (np.stack(column) for column in zip(*columns, strict=True))
    return [
        {
            "prev_reward": reward[: t.num_steps, lane],
            "terminal": terminal[: t.num_steps, lane],
            "progress": progress[: t.num_steps, lane],
        }
        for lane, t in enumerate(trajectories)
    ]


class Scripted(gym.Env[Array, Any]):
    """Achieves what a script says, whatever is done; several goals in one step at will."""

    observation_space = gym.spaces.Box(0.0, 1e6, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, spec: GoalSpec, script: list[Any], asked: Any) -> None:
        self.goals, self.script, self.asked = spec, script, asked

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {"instruction": self.asked, "achieved": self.script[0]}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self.time += 1
        over = self.time == len(self.script) - 1
        info = {"achieved": self.script[self.time]}
        return np.full(1, self.time, np.float32), 7.0, over, False, info


def scripted_spec(spec: GoalSpec) -> EnvSpec:
    obs = {"observation": ObsSpec((1,), "float32")}
    return EnvSpec("Scripted", obs, ActionSpec("discrete", 2), None, spec)


def record_script(spec: GoalSpec, script: list[Any], asked: Any) -> Trajectory:
    """The rollout that a scripted environment makes."""
    env = InProcessVector(lambda: Scripted(spec, script, asked), 1, seed=0)
    recorder = Recorder(env.spec, env.tasks)
    recorder.add(Step(env.reset()))
    while True:
        finished = recorder.add(env.step(np.zeros(1, np.int64)))
        if finished:
            return finished[0]


def scripted_env(spec: GoalSpec, script: list[Any], asked: Any) -> FollowInstructions:
    return FollowInstructions(Scripted(spec, script, asked))
