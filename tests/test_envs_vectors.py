"""No row is lost, doubled or shuffled, whichever vector holds the lanes."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from counting_env import (
    NUM_ACTIONS,
    CountingEnv,
    CountingTask,
    ending,
    expected_rows,
    length,
    streams,
)
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from amago.envs.joint import JointVector
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.vector import (
    GymVector,
    InProcessVector,
    NativeVector,
    WorkerVector,
    world_seed,
)
from amago.types import Timestep

SEED, LANES, CALLS = 11, 5, 60
ACTIONS = np.random.default_rng(0).integers(0, NUM_ACTIONS, (CALLS, LANES))


class FreshObs(gym.ObservationWrapper[Any, Any, Any]):
    """SyncVectorEnv itself keeps references to final observations, so hand it copies."""

    def observation(self, observation: Any) -> Any:
        return observation.copy()


def in_process(first_lane: int = 0, num_lanes: int = LANES) -> InProcessVector:
    return InProcessVector(partial(CountingEnv, SEED), num_lanes, SEED, first_lane=first_lane)


def native(first_lane: int = 0, num_lanes: int = LANES) -> NativeVector:
    return NativeVector(CountingTask(SEED), num_lanes, SEED, first_lane=first_lane)


def gym_vector(mode: AutoresetMode) -> GymVector:
    makers = [lambda: FreshObs(CountingEnv(SEED))] * LANES
    return GymVector(SyncVectorEnv(makers, autoreset_mode=mode), SEED)


def check(vector: Any, **differences: Any) -> None:
    lanes, _ = streams(vector, ACTIONS)
    for lane in range(LANES):
        assert lanes[lane] == expected_rows(SEED, lane, ACTIONS[:, lane], **differences)


def test_in_process_lanes_emit_every_row_once_and_in_order():
    check(in_process())


def test_native_lanes_emit_every_row_once_and_in_order():
    check(native(), always_terminates=True)


@pytest.mark.parametrize("num_workers", [1, 2, 5])
def test_worker_lanes_emit_every_row_once_and_in_order_for_any_number_of_workers(num_workers):
    vector = WorkerVector(in_process, LANES, num_workers)
    check(vector)
    assert vector.episodes.tolist() == [row.obs[1] + 1 for row in last_rows()]
    vector.close()


def last_rows() -> list[Any]:
    return [expected_rows(SEED, lane, ACTIONS[:, lane])[-1] for lane in range(LANES)]


def test_native_lanes_in_workers_equal_native_lanes_in_process():
    vector = WorkerVector(native, LANES, 2)
    check(vector, always_terminates=True)
    vector.close()


def test_a_gymnasium_vector_that_resets_on_the_next_step_emits_every_row_once():
    check(gym_vector(AutoresetMode.NEXT_STEP), skips_an_action=True, seeded_once=True)


def test_a_gymnasium_vector_that_resets_in_the_same_step_emits_every_row_once():
    check(gym_vector(AutoresetMode.SAME_STEP), seeded_once=True)


def test_a_gymnasium_vector_without_autoreset_emits_every_row_once_with_its_own_seeds():
    check(gym_vector(AutoresetMode.DISABLED))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_gymnasium_vector_counts_the_rollouts_that_it_begins(mode):
    vector = gym_vector(mode)
    lanes, _ = streams(vector, ACTIONS)
    begun = [sum(row.time == 0 for row in rows) for rows in lanes]
    assert vector.episodes.tolist() == begun


def joint() -> JointVector:
    parts = [in_process(0, 2), in_process(2, LANES - 2)]
    return JointVector(parts, (1.0, 1.0), parts[0].spec)


@pytest.mark.parametrize(
    "make", [in_process, native, joint, partial(WorkerVector, in_process, LANES, 3)]
)
def test_idle_lanes_rest_until_the_next_reset_and_the_others_go_on_as_before(make):
    everyone, some = make(), make()
    rows = [everyone.reset(), some.reset()]
    idle, begun = np.zeros(LANES, np.bool_), some.episodes.copy()
    for call, action in enumerate(ACTIONS):
        if call in (20, 31):
            idle[[3 if call == 20 else 0]] = True
            begun = np.where(idle, np.maximum(begun * idle, some.episodes), 0)
        steps = everyone.step(action), some.step(action, idle)
        rows = [step.rows.select(~idle) for step in steps]
        assert_same_rows(*rows)
        assert not np.isin(steps[1].final_lanes, np.flatnonzero(idle)).any()
        awake = np.flatnonzero(~idle[steps[0].final_lanes])
        if len(awake):
            assert_same_rows(steps[0].final.select(awake), steps[1].final)
        assert not steps[1].rows.last[idle].any()
    assert (some.episodes == np.where(idle, begun, everyone.episodes)).all()
    again = some.reset()
    assert (again.time == 0).all() and again.obs["observation"][3].tolist() == [3, begun[3], 0]
    for vector in (everyone, some):
        vector.close()


class Levels(CountingEnv):
    """Comes as far as its steps, and shows which level it was assigned."""

    def __init__(self) -> None:
        super().__init__(SEED)
        self.curriculum = 0

    @property
    def curriculum(self) -> int:
        return max(self.assigned, self.reached)

    @curriculum.setter
    def curriculum(self, level: int) -> None:
        self.assigned, self.reached = level, level

    def step(self, action: Any) -> Any:
        *results, info = super().step(action)
        self.reached = max(self.reached, 10 * self.place[0] + self.step_count)
        return *results, {**info, "is_success": self.assigned > 0}


def level_lanes(first_lane: int, num_lanes: int, name: str = "levels") -> InProcessVector:
    return InProcessVector(Levels, num_lanes, SEED, first_lane=first_lane, name=name)


def two_tasks() -> JointVector:
    parts = [level_lanes(0, 2, "easy"), level_lanes(2, 3, "hard")]
    return JointVector(parts, (1.0, 1.0), parts[0].spec)


@pytest.mark.parametrize(
    ("make", "furthest"),
    [
        (partial(level_lanes, 0, LANES), {"levels": 47}),
        (partial(WorkerVector, level_lanes, LANES, 2), {"levels": 47}),
        (two_tasks, {"easy": 17, "hard": 47}),
    ],
)
def test_all_lanes_of_a_task_go_on_from_its_most_advanced_one_once_they_are_told(make, furthest):
    vector = make()
    assert set(vector.curriculum.values()) == {0}
    vector.reset()
    for action in ACTIONS:
        assert not vector.step(action).rows.success.any()  # no lane follows another on its own
    assert vector.curriculum == furthest
    vector.curriculum = vector.curriculum
    assert vector.step(ACTIONS[0]).rows.success.all() and vector.curriculum == furthest
    vector.curriculum = dict.fromkeys(furthest, 3)
    assert vector.curriculum == dict.fromkeys(furthest, 3)
    vector.close()


def test_tasks_without_a_curriculum_have_none():
    for vector in (native(), in_process(), joint()):
        assert vector.curriculum == {}
        vector.curriculum = {"another task": 4}
        assert vector.curriculum == {}


def assert_same_rows(a: Timestep, b: Timestep) -> None:
    for name in ("time", "prev_action", "prev_reward", "first", "terminal", "last", "world_seed"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert np.array_equal(a.obs["observation"], b.obs["observation"])


@pytest.mark.parametrize("make", [in_process, partial(WorkerVector, in_process, LANES, 2)])
def test_setting_episodes_resumes_with_the_worlds_of_those_rollouts(make):
    vector = make()
    vector.episodes = np.arange(LANES) + 4
    lanes, _ = streams(vector, ACTIONS[:20])
    for lane in range(LANES):
        want = expected_rows(SEED, lane, ACTIONS[:20, lane], first_episode=lane + 4)
        assert lanes[lane] == want
    vector.close()


def test_episodes_cannot_be_edited_in_place_nor_set_for_other_lanes():
    vector = in_process()
    with pytest.raises(ValueError):
        vector.episodes[0] = 3
    with pytest.raises(ValueError, match="number of lanes that the run was started with"):
        vector.episodes = np.zeros(LANES + 1)


def test_world_seeds_are_a_function_of_seed_lane_and_episode_and_differ_in_each():
    seeds = {world_seed(s, lane, n) for s in range(4) for lane in range(20) for n in range(20)}
    assert len(seeds) == 4 * 20 * 20
    assert world_seed(1, 2, 3) == world_seed(1, 2, 3) >= 0


def test_lanes_are_numbered_across_vectors():
    rows = in_process(first_lane=3, num_lanes=2).reset()
    assert rows.world_seed.tolist() == [world_seed(SEED, 3, 0), world_seed(SEED, 4, 0)]


@pytest.mark.parametrize("make", [in_process, partial(gym_vector, AutoresetMode.SAME_STEP)])
def test_success_is_taken_from_info_and_silence_counts_as_failure_once_reported(make):
    _, steps = streams(make(), ACTIONS)
    seen = False
    for step in steps:
        if step.final is not None:
            seen = True
            places = step.final.obs["observation"][:, :2].astype(int)
            want = [ending(lane, episode)[0] for lane, episode in places]
            assert step.final.success.tolist() == want
        assert (step.rows.success is None) == (not seen)
        assert not seen or not step.rows.success.any()


def test_next_step_lanes_report_success_on_their_final_rows():
    _, steps = streams(gym_vector(AutoresetMode.NEXT_STEP), ACTIONS)
    for step in (step for step in steps if step.rows.last.any()):
        for lane, episode, _ in step.rows.obs["observation"][step.rows.last].astype(int):
            assert step.rows.success[lane] == ending(lane, episode)[0]


def test_emitted_rows_never_change_afterwards():
    vector = in_process()
    first = vector.reset()
    before = first.obs["observation"].copy()
    later = [vector.step(row).rows for row in ACTIONS[:10]]
    copies = [rows.obs["observation"].copy() for rows in later]
    [vector.step(row) for row in ACTIONS[10:20]]
    assert np.array_equal(first.obs["observation"], before)
    assert all(np.array_equal(r.obs["observation"], c) for r, c in zip(later, copies, strict=True))


def test_the_counting_worlds_cover_single_step_episodes_and_every_kind_of_end():
    rows = [row for lane in range(LANES) for row in expected_rows(SEED, lane, ACTIONS[:, lane])]
    places = {tuple(map(int, row.obs[:2])) for row in rows if row.last}
    assert {length(*place) for place in places} == set(range(1, 8))
    assert {ending(*place) for place in places} == {(True, False), (False, True), (True, True)}


def test_continuous_actions_are_clipped_before_they_are_executed_and_recorded():
    vector = make_vector(EnvSettings(id="Pendulum-v1"), seed=0, num_lanes=2)
    vector.reset()
    rows = vector.step(np.array([[3.0], [-0.25]], np.float32)).rows
    assert rows.prev_action.tolist() == [[1.0], [-0.25]]
    assert rows.prev_reward.dtype == np.float32


def test_a_vector_environment_that_takes_one_seed_for_all_lanes_is_supported():
    env = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
    vector = GymVector(env, seed=3)
    a, b = vector.reset(), GymVector(env, seed=3).reset()
    assert np.array_equal(a.obs["observation"], b.obs["observation"])
    assert vector.spec.horizon == 500
    assert len(set(a.world_seed.tolist())) == 1


@pytest.mark.parametrize("bad", [np.zeros(4, int), np.full(5, 9), np.full(5, -1), np.zeros(5)])
def test_actions_of_the_wrong_shape_range_or_type_are_refused(bad):
    vector = in_process()
    vector.reset()
    with pytest.raises(ValueError, match="expected"):
        vector.step(bad)


def test_a_vector_environment_without_a_known_autoreset_mode_is_refused():
    env = SyncVectorEnv([lambda: CountingEnv(SEED)])
    env.metadata = {}
    with pytest.raises(ValueError, match="autoreset_mode"):
        GymVector(env, 0)
    with pytest.raises(ValueError, match="InProcessVector"):
        GymVector(CountingEnv(SEED), 0)
