"""What collectors, weights on their way to them, and storing their trajectories cost."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from amago.agent.agent import Agent, Parts
from amago.bench import scale_ray
from amago.bench.conditions import Bench
from amago.bench.results import Result, Target, rate
from amago.bench.scale_model import ROLLOUT_STEPS, Costs, acting_seconds, forecasts
from amago.bench.synthetic import random_trajectory
from amago.bench.timing import Timing, interleave
from amago.config import override
from amago.envs.catalogue import preset
from amago.envs.elsewhere import LanesElsewhere
from amago.envs.joint import share_out
from amago.replay.record import Record, record_of
from amago.replay.store import TrajectoryStore
from amago.scale.collect_dispatch import Dispatch
from amago.scale.collect_processes import ProcessFleet
from amago.scale.collect_weights import load, take
from amago.scale.collector import Blueprint, LaneShare
from amago.types import ActionSpec, EnvSpec, ObsSpec

_SLEEP_SECONDS = 0.05
_COLLECTORS = (1, 2, 4, 8, 16)
_LANES = 4
"""Lanes of each collector, which are stepped one after the other."""
_STEPS = 10
_LINEAR = 0.9
SIZES = ("tiny", "small", "medium", "paper")
_OBSERVATIONS = (8, 1000)
"""Numbers per observation, of those that are stored."""
_PRESET = "dark-key-to-door"
_MB = 1e6


def run(bench: Bench, collectors: Sequence[int] = _COLLECTORS) -> list[Result]:
    results = _broadcast(bench)
    calling = 0.0
    if importlib.util.find_spec("ray") is not None:
        of_ray, calling = scale_ray.run(bench, _records(_spec(8), _LANES))
        results += of_ray
    collecting = _collecting(bench, collectors[:2] if bench.quick else collectors)
    assert collecting[0].value is not None
    acting = acting_seconds(collecting[0].value, _LANES, _SLEEP_SECONDS)
    for num_obs in _OBSERVATIONS:
        stored, storing = _ingest(bench, num_obs)
        costs = Costs(_LANES, acting, storing, calling)
        results += stored + forecasts(costs, f"observations of {num_obs:,} numbers")
    return results + collecting


class _SleepingEnv(gym.Env[Any, Any]):
    """An environment whose step takes a fixed time and no processor."""

    observation_space = gym.spaces.Box(0.0, 1.0, (8,))
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(8, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(_SLEEP_SECONDS)
        return np.zeros(8, np.float32), 0.0, False, False, {}


def _collecting(bench: Bench, collectors: Sequence[int]) -> list[Result]:
    """Steps per second of more and more collectors, beside as many times one collector's."""
    most = max(collectors)
    # What collectors use is theirs; only before they begin is a busy machine that of others.
    disturbed = os.getloadavg()[0] > (os.cpu_count() or 1)
    bench.say(f"scale: starting {most} collectors")
    results: list[Result] = []
    with _fleet(most) as (dispatch, agent):
        dispatch.publish(take(agent, 0))
        places = share_out(most, most * _LANES)
        _play(dispatch, places, 0)  # makes the environments
        one = 0.0
        for count in collectors:
            bench.say(f"scale: {count} collectors")
            rates = [_play(dispatch, places[:count], 1 + number) for number in range(3)]
            value = float(np.median(rates))
            one = one or value / count
            linear = value / (count * one)
            results.append(
                Result(
                    "scale",
                    f"{count} collectors, {_LANES} lanes each, 50 ms a step",
                    value,
                    "env steps/s",
                    "linear",
                    linear,
                    spread=float(np.ptp(rates)),
                    disturbed=disturbed,
                    target=Target("ratio", "≥", _LINEAR),
                )
            )
    return results


def _play(dispatch: Dispatch, places: Sequence[range], epoch: int) -> float:
    begin = time.perf_counter()
    for lanes in places:
        dispatch.put(LaneShare(lanes, epoch, np.full(len(lanes), epoch), {}, 0.0))
    left, steps = len(places), 0
    while left:
        for harvest in dispatch.step(0.05):
            left -= 1
            steps += harvest.num_steps
    return steps / (time.perf_counter() - begin)


@contextlib.contextmanager
def _fleet(count: int) -> Iterator[tuple[Dispatch, Agent]]:
    config = override(preset(_PRESET), {"env.num_lanes": count * _LANES, "env.kwargs": {}})
    config = override(config, {"env.num_workers": 0, "replay.context_length": 100})
    blueprint = Blueprint(config, 0, _STEPS, 1, Parts(), _SleepingEnv)
    fleet = ProcessFleet(blueprint)
    try:
        dispatch = Dispatch(fleet, count, timeout=600.0)
        while dispatch.num_collectors < count:
            dispatch.step(0.2)
        lanes = LanesElsewhere(config.env, seed=0, num_lanes=1, make_env=_SleepingEnv)
        yield dispatch, Agent(lanes.spec, config)
    finally:
        fleet.close()


def _broadcast(bench: Bench) -> list[Result]:
    """What giving out new weights costs the learner, and taking them a collector."""
    bench.say("scale: weights of four sizes")
    results = []
    for name in SIZES:
        agent = Agent(_spec(8), preset(_PRESET, name))
        weights = take(agent, 0)
        message = pickle.dumps(weights, protocol=5)
        calls: dict[str, Callable[[], Any]] = {
            "learner": partial(_give, agent),
            "collector": partial(_take, agent, message),
        }
        timings = interleave(calls, bench.effort)
        for side, timing in timings.items():
            about = f"weights of size {name}, {weights.num_bytes / _MB:.2f} MB: {side}"
            megabytes = rate(weights.num_bytes / _MB, timing)
            results.append(Result("scale", about, unit="MB/s", **megabytes,
                                  note=f"{1000 * timing.seconds:.2f} ms"))  # fmt: skip
    return results


def _give(agent: Agent) -> bytes:
    return pickle.dumps(take(agent, 0), protocol=5)


def _take(agent: Agent, message: bytes) -> None:
    load(agent, pickle.loads(message))


def _ingest(bench: Bench, num_obs: int) -> tuple[list[Result], float]:
    """What the ingest thread takes in: shares of rollouts that collectors have made into records.
    Also the seconds that it needs for one."""
    about = f"storing shares of {_LANES} rollouts of {ROLLOUT_STEPS} steps of {num_obs:,} numbers"
    bench.say(f"scale: {about}")
    spec = _spec(num_obs)
    records = _records(spec, _LANES)
    timing = _storing(records, spec, bench)
    megabytes = sum(len(record.data) for record in records) / _MB
    return [
        Result("scale", about, unit="trajectories/s", **rate(len(records), timing)),
        Result("scale", about, unit="MB/s", **rate(megabytes, timing)),
    ], timing.seconds


def _records(spec: EnvSpec, count: int) -> list[Record]:
    rng = np.random.default_rng(0)
    return [record_of(random_trajectory(spec, ROLLOUT_STEPS, rng), spec) for _ in range(count)]


def _storing(records: Sequence[Record], spec: EnvSpec, bench: Bench) -> Timing:
    numbers, message = itertools.count(), pickle.dumps(list(records), protocol=5)
    folder = tempfile.TemporaryDirectory(prefix="amago-bench-")
    with folder as name, TrajectoryStore(Path(name) / "replay", spec, 2000) as store:

        def write() -> None:
            store.append_records(pickle.loads(message))
            if next(numbers) % 50 == 49:
                store.evict()

        return interleave({"store": write}, bench.effort)["store"]


def _spec(num_obs: int) -> EnvSpec:
    obs = {"observation": ObsSpec((num_obs,), "float32")}
    return EnvSpec("synthetic", obs, ActionSpec("discrete", 4), ROLLOUT_STEPS)
