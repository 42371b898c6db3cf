"""From environment through collection and store to Batch: no row lost, doubled or shuffled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from counting_env import (
    NUM_ACTIONS,
    CountingEnv,
    CountingTask,
    ending,
    is_soft_reset,
    length,
)
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from test_replay_helpers import sequences

from amago.envs.vector import GymVector, InProcessVector, NativeVector, world_seed
from amago.replay.sampler import Sampler
from amago.replay.store import TrajectoryStore
from amago.rollout.collect import collect
from amago.rollout.exploration import Exploration
from amago.rollout.scores import summarise
from amago.rollout.settings import ExplorationSettings

SEED, LANES, HORIZON = 11, 4, 7


class FreshObs(gym.ObservationWrapper):
    def observation(self, observation):
        return observation.copy()


@dataclass(frozen=True)
class Case:
    """A vector, and how it behaves between rollouts."""

    make: object
    skips_a_call: bool = False
    always_terminates: bool = False
    seeded_once: bool = False


def in_process(horizon=HORIZON):
    return InProcessVector(partial(CountingEnv, SEED), LANES, SEED, horizon=horizon)


def native():
    return NativeVector(CountingTask(SEED), LANES, SEED)


def gym_vector(mode):
    makers = [lambda: FreshObs(CountingEnv(SEED))] * LANES
    return GymVector(SyncVectorEnv(makers, autoreset_mode=mode), SEED, horizon=HORIZON)


CASES = {
    "in process": Case(in_process),
    "native": Case(native, always_terminates=True),
    "next step": Case(
        partial(gym_vector, AutoresetMode.NEXT_STEP), skips_a_call=True, seeded_once=True
    ),
    "same step": Case(partial(gym_vector, AutoresetMode.SAME_STEP), seeded_once=True),
}


class Scripted:
    """A policy that wants action 0 always, so that other actions are exploration's."""

    calls = acted = 0
    """How often it was asked, and for how many lanes in all."""

    def initial_state(self, num_lanes):
        return np.arange(num_lanes)

    def act(self, timestep, state):
        # The environment's first number is the lane.
        assert (timestep.obs["observation"][:, 0] == state).all()
        self.calls += 1
        self.acted += len(timestep)
        return np.zeros(len(timestep), np.int64), state

    def select(self, state, lanes):
        return state[lanes]


class Recording:
    """A vector that notes the action of every lane and call."""

    def __init__(self, env):
        self._env, self.actions = env, []

    def __getattr__(self, name):
        return getattr(self._env, name)

    def step(self, action, idle=None):
        self.actions.append(np.array(action))
        return self._env.step(action, idle)


def noise(env, seed=0):
    settings = ExplorationSettings(start=(1.0, 1.0), end=(1.0, 1.0))
    return Exploration(
        settings, env.spec, num_lanes=LANES, anneal_steps=100, rollout_steps=20, seed=seed
    )


def expected_spans(case, steps, first_episode=0):
    """(lane, episode) → (call of its reset row, number of steps), for what must be recorded.

    A rollout counts where it made a step within the budget; it is then played to its end.
    """
    spans = {}
    for lane in range(LANES):
        begin, episode = 0, first_episode
        while begin < steps:
            spans[lane, episode] = (begin, length(lane, episode))
            begin += length(lane, episode) + case.skips_a_call
            episode += 1
    return spans


def gather(case, steps, tmp_path, seed=0):
    env, policy, sunk = Recording(case.make()), Scripted(), []
    store = TrajectoryStore(tmp_path / "store", env.spec, 10_000)

    def sink(trajectories):
        sunk.extend(trajectories)
        store.append(trajectories)

    records, recorded = collect(env, policy, noise(env, seed), steps, sink)
    return env, policy, store, sunk, records, recorded


def place_of(trajectory):
    return tuple(trajectory.obs["observation"][0, :2].astype(int).tolist())


def check_row(case, actions, spans, lane, episode, step, row):
    """One row against the simulation: (action, reward, first, terminal)."""
    action, reward, first, terminal = row
    begin, steps = spans[lane, episode]
    if step == 0:
        assert action is None and reward == 0.0 and first and not terminal
        return
    executed = int(actions[begin + step - 1][lane])
    over = step == steps
    assert action == executed
    assert reward == 1000.0 * lane + 100.0 * episode + 10.0 * step + executed
    assert first == (is_soft_reset(episode, step) and not over)
    assert terminal == (over and (case.always_terminates or ending(lane, episode)[0]))


@pytest.mark.parametrize("steps", [1, 9, 40])
@pytest.mark.parametrize("name", CASES)
def test_every_rollout_that_began_within_the_budget_is_stored_whole_and_once(name, steps, tmp_path):
    case = CASES[name]
    env, policy, store, sunk, _, recorded = gather(case, steps, tmp_path)
    spans = expected_spans(case, steps)
    assert sorted(map(place_of, sunk)) == sorted(spans)
    assert len(env.actions) == max(begin + n for begin, n in spans.values())
    assert policy.calls == len(env.actions)
    assert recorded == sum(n for _, n in spans.values()) == sum(t.num_steps for t in sunk)
    assert len(store) == len(spans)
    for trajectory in map(store.read, store.ids.tolist()):
        lane, episode = place_of(trajectory)
        assert trajectory.num_steps == spans[lane, episode][1]
        seeded = 0 if case.seeded_once else episode
        assert trajectory.world_seed == world_seed(SEED, lane, seeded)
        for step in range(trajectory.num_steps + 1):
            assert trajectory.obs["observation"][step].tolist() == [lane, episode, step]
            action = int(trajectory.prev_action[step]) if step else None
            row = (
                action,
                float(trajectory.prev_reward[step]),
                bool(trajectory.first[step]),
                bool(trajectory.terminal[step]),
            )
            check_row(case, env.actions, spans, lane, episode, step, row)
    store.close()


@pytest.mark.parametrize("context_length", [3, 7])
@pytest.mark.parametrize("name", CASES)
def test_every_row_of_a_batch_is_the_row_that_the_environment_made(name, context_length, tmp_path):
    case = CASES[name]
    env, _, store, _, _, _ = gather(case, 40, tmp_path)
    spans, seen = expected_spans(case, 40), set()
    sampler = Sampler(store, 150, context_length, seed=0)
    explored = 0
    for batch in sampler.batches(0, 3):
        assert len(batch.lengths) == 150
        for part in sequences(batch):
            lane, episode, start = map(int, part.obs["observation"][0])
            assert len(part) == min(context_length, spans[lane, episode][1]) + 1
            seen.add((lane, episode))
            for t in range(len(part)):
                step = start + t
                assert part.obs["observation"][t].tolist() == [lane, episode, step]
                assert int(part.time[t]) == step
                action = int(part.prev_action[t]) if step else None
                explored += bool(action)
                reward, first = float(part.prev_reward[t]), bool(part.first[t])
                row = (action, reward, first, bool(part.terminal[t]))
                check_row(case, env.actions, spans, lane, episode, step, row)
    assert seen == set(spans)
    assert explored > 100  # exploration did replace actions, and the batch shows them
    store.close()


def test_a_second_collection_goes_on_with_new_worlds_and_loses_none_of_the_first(tmp_path):
    env, store = in_process(), None
    store = TrajectoryStore(tmp_path / "store", env.spec, 10_000)
    places = []
    for _ in range(3):
        sunk = []
        collect(env, Scripted(), noise(env), 10, lambda x, sunk=sunk: sunk.extend(x))
        store.append(sunk)
        places += map(place_of, sunk)
        assert len(sunk) > 0
    assert len(set(places)) == len(places) == len(store)
    assert all(store.read(i).prev_action[0] == 0 for i in store.ids.tolist())
    store.close()


@pytest.mark.parametrize("name", CASES)
def test_exploration_is_annealed_over_recorded_steps_alone(name):
    env, sunk = CASES[name].make(), []
    exploration, policy = noise(env), Scripted()
    _, recorded = collect(env, policy, exploration, 9, sunk.extend)
    assert exploration.steps == recorded < LANES * policy.calls


@pytest.mark.parametrize("name", CASES)
def test_only_lanes_whose_rollouts_go_on_are_acted_for(name):
    env, sunk = CASES[name].make(), []
    policy = Scripted()
    _, recorded = collect(env, policy, noise(env), 9, sunk.extend)
    resets = sum(n for n in env.episodes) - LANES if CASES[name].skips_a_call else 0
    assert recorded <= policy.acted <= recorded + resets


def test_lanes_that_wait_are_not_stepped_and_enter_no_new_worlds():
    steps = dict.fromkeys(range(LANES), 0)

    class Counted(CountingEnv):
        def step(self, action):
            steps[self.place[0]] += 1
            return super().step(action)

    env, sunk = InProcessVector(partial(Counted, SEED), LANES, SEED, horizon=HORIZON), []
    _, recorded = collect(env, Scripted(), noise(env), 9, sunk.extend)
    assert sum(steps.values()) == recorded
    spans = expected_spans(CASES["in process"], 9)
    # After its last recorded rollout a lane is reset once, within the same call.
    latest = [max(episode for lane, episode in spans if lane == n) for n in range(LANES)]
    assert (env.episodes <= np.array(latest) + 2).all()


def test_lanes_that_finish_after_the_budget_are_not_opened_again(tmp_path):
    _, _, store, sunk, _, _ = gather(CASES["in process"], 9, tmp_path)
    spans = expected_spans(CASES["in process"], 9)
    latest = {lane: max(e for n, e in spans if n == lane) for lane in range(LANES)}
    assert {
        lane: max(p[1] for p in map(place_of, sunk) if p[0] == lane) for lane in latest
    } == latest
    store.close()


@pytest.mark.parametrize("steps", [1, 8, 23])
def test_without_a_known_horizon_open_rollouts_are_cut_as_truncated(steps, tmp_path):
    case = Case(partial(in_process, None))
    env, _, store, sunk, records, recorded = gather(case, steps, tmp_path)
    assert len(env.actions) == steps
    # Every lane made exactly `steps` steps, and all of them are stored.
    assert recorded == LANES * steps == sum(t.num_steps for t in sunk)
    ended = 0
    for trajectory in sunk:
        lane, episode = place_of(trajectory)
        complete = trajectory.num_steps == length(lane, episode)
        ended += complete
        assert not trajectory.terminal[:-1].any()
        assert bool(trajectory.terminal[-1]) == (complete and ending(lane, episode)[0])
        assert trajectory.num_steps >= 1
    assert len(records) == ended
    assert all(record.blocks is None for record in records)
    store.close()


def test_a_rollout_that_has_made_no_step_when_the_budget_is_met_is_dropped_not_stored(tmp_path):
    # Lane 0 ends its first rollout at call 1: at a budget of 1 its second has only a reset row.
    assert length(0, 0) == 1
    _, _, store, sunk, _, _ = gather(Case(partial(in_process, None)), 1, tmp_path)
    assert (0, 1) not in map(place_of, sunk)
    store.close()


@pytest.mark.parametrize("name", CASES)
def test_tracker_and_recorder_agree_with_a_slow_sum_also_per_tenth_of_the_horizon(name, tmp_path):
    _, _, store, sunk, records, _ = gather(CASES[name], 40, tmp_path)
    assert len(records) == len(sunk)
    waiting = {lane: [r for r in records if r.lane == lane] for lane in range(LANES)}
    for trajectory in sorted(sunk, key=place_of):
        lane, episode = place_of(trajectory)
        record = waiting[lane].pop(0)
        blocks = [0.0] * 10
        for t in range(trajectory.num_steps):
            blocks[int(10 * t / HORIZON)] += float(trajectory.prev_reward[t + 1])
        assert record.length == trajectory.num_steps
        assert record.total == sum(blocks)
        assert record.blocks.tolist() == blocks
        assert record.task == trajectory.task
        if name != "native":
            assert record.success in (None, ending(lane, episode)[0])
    summary = summarise(records)
    totals = [float(t.prev_reward.sum(dtype=np.float64)) for t in sunk]
    assert summary["episodes"] == len(sunk)
    assert summary["return_mean"] == pytest.approx(sum(totals) / len(totals))
    assert sum(summary["return_per_block"]) == pytest.approx(summary["return_mean"])
    assert "tasks" not in summary
    elsewhere = [replace(record, task="another") for record in records[:1]]
    tasks = summarise([*records, *elsewhere])["tasks"]
    assert tasks[sunk[0].task] == summary and tasks["another"]["episodes"] == 1
    store.close()


def test_actions_in_the_store_cover_all_that_exploration_drew(tmp_path):
    env, _, store, sunk, _, _ = gather(CASES["in process"], 40, tmp_path)
    drawn = {int(a) for row in env.actions for a in row}
    stored = {int(action) for t in sunk for action in t.prev_action[1:]}
    assert drawn == stored == set(range(NUM_ACTIONS))
    store.close()
