"""A trained agent for other people's loops, in the manner of Stable-Baselines3."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space

from amago.agent.policy import AgentPolicy
from amago.envs.lanes import no_action
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.goals import pad
from amago.serving.observations import read
from amago.types import Array, Timestep

_LOG = logging.getLogger("amago")


@dataclass
class PredictState:
    """What must be carried from one prediction to the next."""

    memory: Any
    prev_action: Array  # [N, ...] agent actions
    time: Array  # [N]
    used: bool = False
    """Whether a prediction has gone on from here; its memory was then changed in place."""


class Predictor:
    """Observations in, environment actions out; memory travels in `state`.

    One environment: pass its observation. N environments: pass batched observations [N, ...],
    or for Dict spaces a list of N of them, and get N actions.
    """

    def __init__(
        self, policy: AgentPolicy, observation_space: Space[Any], action_space: Space[Any]
    ) -> None:
        self.policy = policy
        self.observation_space, self.action_space = observation_space, action_space
        self._obs, self._action = ObsConverter(observation_space), ActionConverter(action_space)
        self._told = False

    def predict(
        self,
        obs: Any,
        state: PredictState | None = None,
        episode_start: Any = None,
        deterministic: bool | None = None,
        *,
        reward: Any = None,
        first: Any = None,
        instruction: Any = None,
        progress: Any = None,
    ) -> tuple[Any, PredictState]:
        """Choose actions, as in Stable-Baselines3: `action, state = predict(obs, state)`.

        `episode_start` clears the memory of an environment (an outer reset); without a state
        every environment starts. `deterministic` takes the most likely action; unset, it is what
        the agent was loaded with. `reward` is what the last step paid: unlike those of
        Stable-Baselines3, this agent reads it. `first` marks the start of a further trial within
        the same memory.

        Where the environment follows instructions, `instruction` is what is asked (text or
        numbers; a list of them for N environments) and `progress` how many of its goals are
        complete, as the environment's info says.
        """
        if not isinstance(deterministic, bool | np.bool_ | None):
            raise ValueError(f"deterministic takes True, False or None, got {deterministic!r}")
        rows, single = read(self._obs, obs)
        count = len(next(iter(rows.values())))
        start = _per_lane("episode_start", episode_start, count, np.bool_)
        if state is None:
            start[:] = True
            state = PredictState(
                self.policy.initial_state(count),
                no_action(self._action.spec, count),
                np.zeros(count, np.int64),
            )
        self._check(state, count, reward is None and not start.all())
        time = np.where(start, 0, state.time)
        rewards = _per_lane("reward", reward, count, np.float32)
        timestep = Timestep(
            obs=rows,
            prev_action=state.prev_action,
            prev_reward=np.where(start, np.float32(0.0), rewards),
            time=time,
            first=start | _per_lane("first", first, count, np.bool_),
            terminal=np.zeros(count, bool),
            last=np.zeros(count, bool),
            world_seed=np.zeros(count, np.int64),
            **self._asked(instruction, progress, count, single),
        )
        chosen, memory = self.policy.act(timestep, state.memory, deterministic)
        state.used = True
        executed = self._action.executed(chosen, count)
        after = PredictState(memory, executed, time + 1)
        actions = self._action.to_env(executed)
        return (actions[0] if single else actions), after

    def _check(self, state: PredictState, count: int, without_reward: bool) -> None:
        if len(state.time) != count:
            raise ValueError(
                f"state belongs to {len(state.time)} environments, the observation to {count}; "
                "pass state=None to begin with another number of environments"
            )
        if state.used:
            raise ValueError(
                "this state has been predicted from already, which changed its memory; pass the "
                "state that the last call returned, or keep a copy.deepcopy of one to go back to"
            )
        if without_reward and not self._told:
            self._told = True
            _LOG.warning(
                "predict got no reward=, so the agent reads 0; it learned with the reward of the "
                "last step, so pass that for actions as good as in training"
            )

    def __repr__(self) -> str:
        agent = self.policy.agent
        how = "greedy" if self.policy.greedy else "sampled"
        return (
            f"Predictor({agent.spec.name}, {agent.config.memory}, {how} actions of "
            f"{self.action_space})"
        )

    def _asked(self, instruction: Any, progress: Any, count: int, single: bool) -> dict[str, Any]:
        """The instruction's fields of a Timestep."""
        goals = self.policy.agent.spec.goals
        if goals is None:
            return {}
        if instruction is None or progress is None:
            raise ValueError(
                "this agent follows instructions; pass instruction= and progress=, which the "
                'environment reports in info["instruction"] and info["progress"]'
            )
        given = [goals.instruction(one) for one in ([instruction] if single else instruction)]
        if len(given) != count:
            raise ValueError(
                f"expected {count} instructions, one per environment, got {len(given)}"
            )
        slots, num_goals = pad(given, goals.max_goals)
        done = np.broadcast_to(np.asarray(progress, np.int64), (count,)).copy()
        return {"instruction": slots, "num_goals": num_goals, "progress": done}


def _per_lane(name: str, value: Any, count: int, dtype: Any) -> Array:
    """One value per environment [N]; a single one is for all, none is 0."""
    values = np.asarray(0 if value is None else value)
    if values.shape not in ((), (count,)):
        raise ValueError(
            f"expected one {name} for each of {count} environments, got shape {list(values.shape)}"
        )
    return np.broadcast_to(values, (count,)).astype(dtype)
