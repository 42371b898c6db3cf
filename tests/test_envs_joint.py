"""Several tasks at once: lanes, labels, scales, and the same worlds as alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_run_helpers import differing, lines, tiny

from amago import api
from amago.envs.joint import joint_tasks, share_out
from amago.envs.registry import make_vector, single_env
from amago.envs.settings import EnvSettings
from amago.replay.store import TrajectoryStore
from amago.rollout.stats import RolloutTracker

DOOR = "amago/DarkKeyToDoor-v0"
SMALL = {"grid": 2, "trial_limit": 5, "horizon": 9}
PAIR = (DOOR, f"{DOOR}?reward_scale=1000&horizon=12")


def play(vector, steps, seed=0):
    rng = np.random.default_rng(seed)
    found = [vector.reset()]
    finals = []
    for _ in range(steps):
        step = vector.step(rng.integers(5, size=vector.num_lanes))
        found.append(step.rows)
        finals.append((step.final, step.final_lanes))
    return found, finals


def test_ids_carry_arguments_and_scales():
    settings = EnvSettings(ids=PAIR, kwargs={"grid": 3}, num_lanes=4)
    first, second = joint_tasks(settings)
    assert (first.label, first.reward_scale, first.settings.kwargs) == (DOOR, 1.0, {"grid": 3})
    assert second.reward_scale == 1000.0
    assert second.settings.kwargs == {"grid": 3, "horizon": 12} and second.settings.id == DOOR
    assert not second.settings.ids


def test_lanes_are_shared_out_evenly_and_in_order():
    assert share_out(2, 5) == [range(0, 2), range(2, 5)]
    assert share_out(3, 3) == [range(0, 1), range(1, 2), range(2, 3)]
    with pytest.raises(ValueError, match=r"one lane for each of 3 tasks, got 2 .*raise --env"):
        share_out(3, 2)


def test_each_task_plays_the_worlds_of_its_lanes_with_its_rewards():
    joint = make_vector(EnvSettings(ids=PAIR, kwargs=SMALL), seed=3, num_lanes=5)
    assert joint.tasks == (PAIR[0],) * 2 + (PAIR[1],) * 3
    assert joint.spec.horizon == 12  # the longest
    assert joint.horizons == (9, 9, 12, 12, 12)
    alone = [
        make_vector(EnvSettings(id=DOOR, kwargs={**SMALL, "horizon": h}), seed=3, num_lanes=5)
        for h in (9, 12)
    ]
    together, finals = play(joint, 40)
    for vector, lanes, scale in ((alone[0], slice(0, 2), 1.0), (alone[1], slice(2, 5), 1000.0)):
        rows, final_rows = play(vector, 40)
        for ours, theirs in zip(together, rows, strict=True):
            np.testing.assert_array_equal(
                ours.obs["observation"][lanes], theirs.obs["observation"][lanes]
            )
            np.testing.assert_allclose(ours.prev_reward[lanes], scale * theirs.prev_reward[lanes])
            np.testing.assert_array_equal(ours.world_seed[lanes], theirs.world_seed[lanes])
        for (final, at), (other, other_at) in zip(finals, final_rows, strict=True):
            mine = [lane for lane in at if lanes.start <= lane < lanes.stop]
            yours = [lane for lane in other_at if lanes.start <= lane < lanes.stop]
            assert mine == yours
            for lane in mine:
                a = final.prev_reward[list(at).index(lane)]
                assert a == scale * other.prev_reward[list(other_at).index(lane)]
    assert max(row.prev_reward.max() for row in together) >= 1000.0


def test_statistics_are_labelled_and_episodes_resume():
    joint = make_vector(EnvSettings(ids=PAIR, kwargs=SMALL), seed=3, num_lanes=4)
    tracker, records = RolloutTracker(joint), []
    from amago.types import Step

    records += tracker.add(Step(joint.reset()))
    for _ in range(30):
        records += tracker.add(joint.step(np.zeros(4, int)))
    assert {record.task for record in records} == set(PAIR)
    assert {r.length for r in records if r.task == PAIR[0]} == {9}
    again = make_vector(EnvSettings(ids=PAIR, kwargs=SMALL), seed=3, num_lanes=4)
    again.episodes = joint.episodes
    assert again.episodes.tolist() == joint.episodes.tolist() == [4, 4, 3, 3]
    first, other = joint.reset(), again.reset()
    np.testing.assert_array_equal(first.obs["observation"], other.obs["observation"])
    single_env(EnvSettings(ids=PAIR, kwargs=SMALL)).close()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ((DOOR, "amago/Wind-v0"), r"need equal spaces.*DarkKeyToDoor.*Wind.*pad them"),
        ((DOOR, DOOR), "lists a task twice"),
        ((f"{DOOR}?grid",), r"expected name=value after '\?', got 'grid'"),
        ((f"{DOOR}?reward_scale=-1",), "reward_scale to be positive, got -1"),
        ((f"{DOOR}?gird=4",), "no argument 'gird'"),
    ],
)
def test_tasks_that_cannot_be_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        make_vector(EnvSettings(ids=ids), seed=0, num_lanes=4)


def test_workers_play_what_one_process_plays():
    settings = EnvSettings(ids=PAIR, kwargs=SMALL)
    here = make_vector(settings, seed=1, num_lanes=4)
    spread = make_vector(EnvSettings(ids=PAIR, kwargs=SMALL, num_workers=3), seed=1, num_lanes=4)
    try:
        assert spread.spec == here.spec and spread.tasks == here.tasks
        ours, theirs = play(here, 25)[0], play(spread, 25)[0]
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a.prev_reward, b.prev_reward)
            np.testing.assert_array_equal(a.obs["observation"], b.obs["observation"])
    finally:
        spread.close()


def test_a_run_reports_every_task_and_is_deterministic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_, **__: None)
    config = tiny("multi-task", {"env.num_lanes": 4, "env.kwargs": {"delay": 0}})
    for name in "ab":
        result = api.train(config, 0, tmp_path / name).result
    assert differing(tmp_path / "a", tmp_path / "b") == []
    assert set(result["tasks"]) == set(config.env.ids)
    last = lines(tmp_path / "a")[-1]
    assert all(f"eval/return_mean/{task}" in last for task in config.env.ids)
    paid = {task: set[float]() for task in config.env.ids}
    with TrajectoryStore.open_readonly(tmp_path / "a" / "replay") as store:
        for trajectory in map(store.read, store.ids.tolist()):
            paid[trajectory.task] |= set(trajectory.prev_reward.tolist()) - {0.0}
    assert [*paid.values()] == [{0.25}, {250.0}]
    again = api.evaluate(api.load(tmp_path / "a"), config.env, 4, num_lanes=4)
    assert [again["tasks"][task]["episodes"] for task in config.env.ids] == [2, 2]
    mean = sum(earned["return_mean"] for earned in again["tasks"].values()) / 2
    assert again["return_mean"] == pytest.approx(mean)
