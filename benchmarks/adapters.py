"""What the suites' adapters cost over the bare environments, as ratios of interleaved blocks.

    python benchmarks/adapters.py [NAME ...] [--blocks 15] [--steps 200]

Bare and adapted environment play the same seed and actions, block by block in turn, so that other
load on the machine hits both; reported is the median over blocks of the ratio of their CPU times.
Resets are timed apart from steps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

import gymnasium as gym
import numpy as np

from amago.envs.registry import single_env
from amago.envs.settings import EnvSettings

Make = Callable[[], Any]


class OldApi:
    """Crafter itself behind reset(seed) and the five values of step."""

    def __init__(self) -> None:
        import crafter

        self.env = crafter.Env()

    def reset(self, seed: int) -> None:
        self.env._seed, self.env._episode = seed, 0
        self.env.reset()

    def step(self, action: Any) -> tuple[Any, ...]:
        obs, reward, done, info = self.env.step(action)
        return obs, reward, done, False, info


def adapted(name: str, **kwargs: Any) -> Make:
    return lambda: single_env(EnvSettings(id=name, kwargs=kwargs))


def popgym(name: str) -> Make:
    def make() -> Any:
        import popgym  # noqa: F401

        return gym.make(f"popgym-{name}-v0", disable_env_checker=True).unwrapped

    return make


def reach() -> Any:
    import metaworld

    benchmark = metaworld.ML1("reach-v3", seed=0)
    env = benchmark.train_classes["reach-v3"]()
    env.set_task(benchmark.train_tasks[0])
    return env


CASES: dict[str, tuple[Make, Make]] = {
    **{
        f"popgym/{name}": (popgym(name), adapted(f"popgym/{name}"))
        for name in ("RepeatPreviousEasy", "CountRecallEasy", "BattleshipEasy", "ConcentrationEasy",
                     "PositionOnlyCartPoleEasy")
    },
    "half-cheetah-velocity": (
        lambda: gym.make("HalfCheetah-v5", disable_env_checker=True).unwrapped,
        adapted("amago/HalfCheetahVelocity-v0"),
    ),
    "metaworld": (reach, adapted("amago/MetaWorldML1-v0")),
    "crafter textures": (OldApi, adapted("amago/Crafter-v0")),
    "crafter pixels": (OldApi, adapted("amago/Crafter-v0", observation="pixels")),
}  # fmt: skip


def actions_for(env: Any, count: int) -> list[Any]:
    space = env.action_space
    if isinstance(space, gym.spaces.Box):
        generator = np.random.default_rng(0)
        return list(generator.uniform(-1, 1, (count, *space.shape)).astype(np.float32))
    return np.random.default_rng(0).integers(0, space.n, count).tolist()


def in_parts(env: Any, actions: list[Any]) -> list[Any]:
    """Ids as the several parts that a bare environment wants."""
    space = getattr(env, "action_space", None)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return [np.array(np.unravel_index(action, space.nvec)) for action in actions]
    return actions


def block(env: Any, actions: list[Any], seed: int) -> tuple[float, float, int]:
    """CPU seconds in steps and in resets, and how many resets, for one list of actions."""
    stepping = resetting = 0.0
    resets, over = 0, True
    for action in actions:
        if over:
            start = time.process_time()
            env.reset(seed=seed + resets)
            resetting += time.process_time() - start
            resets += 1
        start = time.process_time()
        _, _, terminated, truncated, _ = env.step(action)
        stepping += time.process_time() - start
        over = terminated or truncated
    return stepping, resetting / resets, resets


def compare(make_bare: Make, make_adapted: Make, blocks: int, steps: int) -> dict[str, Any]:
    bare, ours = make_bare(), make_adapted()
    actions = actions_for(ours, steps)
    lists = in_parts(bare, actions), actions
    for env, given in zip((bare, ours), lists, strict=True):
        block(env, given[:20], 0)
    step_ratios, reset_ratios = [], []
    for index in range(blocks):
        order = (0, 1) if index % 2 == 0 else (1, 0)
        timed = {which: block((bare, ours)[which], lists[which], 100 * index) for which in order}
        step_ratios.append(timed[1][0] / timed[0][0])
        reset_ratios.append(timed[1][1] / timed[0][1])
    low, _, high = quantiles(step_ratios, n=4)
    return {"step": median(step_ratios), "low": low, "high": high, "reset": median(reset_ratios)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'case':<34} step time / bare (quartiles)   reset time / bare")
    for name in options.names:
        found = compare(*CASES[name], options.blocks, options.steps)
        spread = f"{found['step']:.2f} ({found['low']:.2f}, {found['high']:.2f})"
        print(f"{name:<34} {spread:<30} {found['reset']:.2f}", flush=True)


if __name__ == "__main__":
    main()
