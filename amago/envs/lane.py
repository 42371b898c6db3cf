"""One environment that is stepped in this process, and what it may return."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym

from amago.envs.faults import EnvFaultError, Place, fault
from amago.envs.settings import EnvSettings
from amago.envs.values import flag_of, number_of
from amago.stopping import Terminated

_LOG = logging.getLogger("amago")
_MOST_RESTARTS = 20
"""Environments that a lane replaces before its next error ends the run."""


class _Outcome(NamedTuple):
    """What a step returned."""

    obs: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Lane:
    """An environment that keeps what is needed to repeat its rollout, should it fail."""

    def __init__(
        self, make_env: Callable[[], gym.Env[Any, Any]], number: int, settings: EnvSettings | None
    ) -> None:
        """`settings` describe the environment, where it is not the user's own function."""
        self.env, self._make, self.number, self._settings = make_env(), make_env, number, settings
        self._actions: list[Any] = []
        self._seed = 0
        self._obs: Any = None
        self.restarts, self.name = 0, ""

    def reset(self, seed: int, draw: Callable[[], int]) -> tuple[Any, dict[str, Any]]:
        """Begin the world of a seed; where that fails and may, one of the seeds that follow."""
        while True:
            self._seed, self._actions = seed, []
            try:
                obs, info = self.env.reset(seed=seed)
                _check_info(info)
            except Terminated:
                raise
            except (Exception, SystemExit) as error:
                self._restart(error)
                seed = draw()
                continue
            self._obs = obs
            return obs, info

    def step(self, action: Any) -> _Outcome:
        """One step. A failure that is tolerated cuts the rollout off where it was."""
        self._actions.append(action)
        try:
            obs, reward, terminated, truncated, info = self.env.step(action)
            ends = flag_of(terminated), flag_of(truncated)
            outcome = _Outcome(obs, number_of(reward), *ends, info)
            _check_info(info)
        except Terminated:
            raise
        except (Exception, SystemExit) as error:
            self._restart(error)
            return _Outcome(self._obs, 0.0, False, True, {})
        self._obs = obs
        return outcome

    def fault(self, error: BaseException) -> EnvFaultError:
        """An error of this moment, with its place."""
        return fault(self.place, error, self._actions, self._settings)

    @property
    def place(self) -> Place:
        return Place(self.name, self.number, self._seed, len(self._actions))

    def _restart(self, error: BaseException) -> None:
        """Raise the error with its place, or replace the environment if that is wanted."""
        found = self.fault(error)
        tolerated = self._settings is not None and self._settings.on_error == "restart"
        if not tolerated or self.restarts >= _MOST_RESTARTS:
            raise found from error
        self.restarts += 1
        _LOG.warning(f"{found}\nthe lane goes on with a new one ({self.restarts} so far)")
        try:
            self.env.close()
        except Terminated:
            raise
        except (Exception, SystemExit):
            _LOG.warning("the failed environment could not be closed")
        self.env = self._make()


def _check_info(info: Any) -> None:
    if not isinstance(info, dict):
        raise TypeError(f"expected a dictionary as info, got {type(info).__name__}")
