"""A trained agent for other people's loops, in the manner of Stable-Baselines3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from amago.agent.policy import AgentPolicy
from amago.envs.lanes import no_action
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.goals import pad
from amago.types import Array, Timestep


@dataclass(frozen=True)
class PredictState:
    """What must be carried from one prediction to the next."""

    memory: Any
    prev_action: Array  # [N, ...] agent actions
    time: Array  # [N]


class Predictor:
    """Observations in, environment actions out; memory travels in `state`.

    One environment: pass its observation and scalars. N environments: pass batched
    observations and arrays [N]. `state` belongs to the call that returned it: hand it to the
    next call and to no other.
    """

    def __init__(self, policy: AgentPolicy, obs: ObsConverter, action: ActionConverter) -> None:
        self.policy = policy
        self._obs, self._action = obs, action

    def predict(
        self,
        obs: Any,
        state: PredictState | None,
        episode_start: Any,
        reward: Any,
        first: Any = None,
        instruction: Any = None,
        progress: Any = None,
    ) -> tuple[Any, PredictState]:
        """Choose actions.

        `episode_start` clears the memory of an environment (an outer reset), `reward` is what
        the last step paid (ignored at a start), `first` marks the start of a further trial
        within the same memory. Where the environment follows instructions, `instruction` is
        what is asked (text or numbers; a list of them for N environments) and `progress` how
        many of its goals are complete, as the environment's info says.
        """
        single = np.ndim(episode_start) == 0
        start = np.atleast_1d(np.asarray(episode_start, bool)).copy()
        count = len(start)
        if state is None:
            start[:] = True
            state = PredictState(
                self.policy.initial_state(count),
                no_action(self._action.spec, count),
                np.zeros(count, np.int64),
            )
        if len(state.time) != count:
            raise ValueError(
                f"state belongs to {len(state.time)} environments, episode_start to {count}; "
                "pass state=None to begin with another number of environments"
            )
        time = np.where(start, 0, state.time)
        rewards = np.broadcast_to(np.asarray(reward, np.float32), (count,))
        begins = start | (False if first is None else np.atleast_1d(np.asarray(first, bool)))
        timestep = Timestep(
            obs=self._obs.stack([obs]) if single else self._obs.batch(obs),
            prev_action=state.prev_action,
            prev_reward=np.where(start, 0.0, rewards).astype(np.float32),
            time=time,
            first=np.broadcast_to(begins, (count,)).copy(),
            terminal=np.zeros(count, bool),
            last=np.zeros(count, bool),
            world_seed=np.zeros(count, np.int64),
            **self._asked(instruction, progress, count, single),
        )
        chosen, memory = self.policy.act(timestep, state.memory)
        executed = self._action.executed(chosen, count)
        after = PredictState(memory, executed, time + 1)
        actions = self._action.to_env(executed)
        return (actions[0] if single else actions), after

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
