"""An environment whose calls are looked after while it is examined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from amago.checks import described
from amago.envs.in_process import Env, checked_env, name_of
from amago.envs.watchdog import Watchdog
from amago.stopping import Terminated


class _Making:
    """An environment that is being made."""

    place = "while it is made"


class _Watched(gym.Wrapper[Any, Any, Any, Any]):
    """Tells a watchdog of every call, and where it is."""

    def __init__(self, env: Env, watchdog: Watchdog) -> None:
        super().__init__(env)
        self._watchdog, self._steps = watchdog, 0
        self._seed: int | None = None

    @property
    def place(self) -> str:
        world = "" if self._seed is None else f", world seed {self._seed}"
        when = f"step {self._steps}" if self._steps else "its reset"
        return f"{name_of(self)}{world}, {when}"

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._seed, self._steps = seed, 0
        self._watchdog.enter(self)
        try:
            return self.env.reset(seed=seed, **({} if options is None else {"options": options}))
        finally:
            self._watchdog.leave()

    def step(self, action: Any) -> Any:
        self._steps += 1
        self._watchdog.enter(self)
        try:
            return self.env.step(action)
        finally:
            self._watchdog.leave()


def made(make_env: Callable[[], Env], watchdog: Watchdog) -> Env:
    """A watched environment with spaces, or a ValueError that says why there is none."""
    watchdog.enter(_Making())
    try:
        return _Watched(_made(make_env), watchdog)
    finally:
        watchdog.leave()


def _made(make_env: Callable[[], Env]) -> Env:
    try:
        env = make_env()
    except (ValueError, Terminated):
        raise
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"expected an environment, got {described(error)} while it was made; "
            "call its constructor with the same arguments to see where"
        ) from error
    env = checked_env(env)
    missing = [name for name in ("observation_space", "action_space") if not hasattr(env, name)]
    if missing:
        raise ValueError(
            f"expected {name_of(env)} to have {' and '.join(missing)}, got none; "
            "set both in its constructor"
        )
    return env
