"""Any environment as k-trial meta-RL: many episodes of one task in one rollout."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym

from amago.envs.in_process import horizon_of
from amago.envs.instructions import goals_of
from amago.envs.lanes import SUCCESS_KEYS
from amago.envs.values import flag_of


class Trials(gym.Wrapper[Any, Any, Any, Any]):
    """Plays `trials` episodes of an environment, or episodes until `horizon` steps, in a row.

    Between trials the environment is reset without a seed, which keeps the task of one whose
    tasks outlive a reset; amago's own are asked to with the option `same_world`. The row
    after the end of a trial is the first of the next, with info["first"]; the trial's own
    final observation is dropped, except at the end of the rollout.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        trials: int | None = None,
        horizon: int | None = None,
        horizon_is_terminal: bool = True,
    ) -> None:
        if trials is None and horizon is None:
            raise ValueError("expected a number of trials, a horizon or both, got neither")
        for name, value in (("trials", trials), ("horizon", horizon)):
            if value is not None and value < 1:
                raise ValueError(f"expected {name} to be at least 1, got {value}")
        if goals_of(env) is not None:
            raise ValueError(
                f"{env} follows instructions, one in a rollout; leave --env.trials unset, and give "
                "it its horizon as an argument of its own"
            )
        super().__init__(env)
        limit = horizon_of(env)
        limits = [horizon, trials * limit if trials is not None and limit is not None else None]
        self.horizon: int | None = min((x for x in limits if x is not None), default=None)
        self._trials = trials
        self._horizon_is_terminal = horizon_is_terminal
        keeps = getattr(env.unwrapped, "keeps_world", False)
        self._inner_options = {"same_world": True} if keeps else None
        self._time = 0
        self._played = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._time = 0
        self._played = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        trial_over = any([flag_of(terminated), flag_of(truncated)])
        self._time += 1
        self._played += trial_over
        if self._time == self.horizon or self._played == self._trials:
            return obs, reward, self._horizon_is_terminal, not self._horizon_is_terminal, info
        if trial_over:
            obs, reset_info = self.env.reset(options=self._inner_options)
            # Whether the trial was solved is a fact about the one that has just ended.
            solved = {key: info[key] for key in SUCCESS_KEYS if key in info}
            info = {**info, **reset_info, **solved, "first": True}
        return obs, reward, False, False, info
