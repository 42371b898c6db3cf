"""Imported data: exact, checked, never evicted; and learning from it alone."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from test_run_helpers import command, differing, lines, tiny

from amago import api
from amago.datasets.episodes import Importer
from amago.datasets.importing import _read_minari, import_into
from amago.datasets.npz import read_npz
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.replay.store import TrajectoryStore
from amago.training.start import create

OBS = spaces.Dict({"x": spaces.Box(-9, 9, (2,)), "room": spaces.Discrete(4, start=1)})
ACTION = spaces.MultiDiscrete([3, 2])
LENGTHS = (3, 1, 4)


def importer(action=ACTION):
    return Importer(ObsConverter(OBS), ActionConverter(action))


def arrays(after=False):
    """Episodes of 3, 1 and 4 steps: terminated, truncated, cut off by the end of the file."""
    rng = np.random.default_rng(0)
    steps, rows = sum(LENGTHS), sum(LENGTHS) + len(LENGTHS)
    x, room = rng.normal(size=(rows, 2)), rng.integers(1, 5, size=rows)
    ends = np.cumsum([n + 1 for n in LENGTHS]) - 1  # the last row of every episode
    starts = ends - LENGTHS
    found = {
        "actions": rng.integers([3, 2], size=(steps, 2)),
        "rewards": rng.normal(size=steps),
        "terminations": np.isin(np.arange(steps), [2]),
        "truncations": np.isin(np.arange(steps), [3]),
    }
    if after:
        before_row = np.setdiff1d(np.arange(rows), ends)
        after_row = np.setdiff1d(np.arange(rows), starts)
        found |= {"observations/x": x[before_row], "observations/room": room[before_row]}
        found |= {"next_observations/x": x[after_row], "next_observations/room": room[after_row]}
    else:
        found |= {"observations/x": x, "observations/room": room}
    return found, x, room


@pytest.mark.parametrize("after", [False, True])
def test_npz_episodes_become_trajectories_row_by_row(after, tmp_path):
    data, x, room = arrays(after)
    np.savez(tmp_path / "d.npz", **data)
    got = list(read_npz(tmp_path / "d.npz", importer()))
    assert [t.num_steps for t in got] == list(LENGTHS)
    row = step = 0
    for number, t in enumerate(got):
        n = t.num_steps
        np.testing.assert_allclose(t.obs["x"], x[row : row + n + 1].astype(np.float32))
        assert (t.obs["room"] == room[row : row + n + 1] - 1).all()
        assert t.obs["room"].dtype == np.uint8
        assert t.prev_reward[0] == 0 and not t.prev_action[0].any()
        np.testing.assert_allclose(t.prev_reward[1:], data["rewards"][step : step + n], rtol=1e-6)
        for k in range(n):
            a, b = data["actions"][step + k]
            assert t.prev_action[k + 1].tolist() == [a, b]
        assert t.first.tolist() == [True] + [False] * n
        assert t.terminal.tolist() == [False] * n + [number == 0]
        row, step = row + n + 1, step + n


def broken(key, change):
    data, *_ = arrays()
    data[key] = change(data[key])
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (broken("observations/x", lambda v: v[:-1]), "expected 11 rows of observations for 8"),
        (broken("observations/x", lambda v: v[:, :1]), r"'x' of shape \[4, 2\]"),
        (broken("observations/x", lambda v: v * np.nan), "'x' is not finite; leave"),
        (broken("observations/room", lambda v: v + 3), r"'room'.*within Discrete.*another space"),
        (broken("observations/room", lambda v: 0 * v + 256), r"'room'.*within Discrete.*got 256"),
        (broken("observations/room", lambda v: v + 0.5), r"'room': expected whole numbers.*got"),
        (broken("observations/room", lambda v: v.astype(str)), r"'room': expected numbers.*got <U"),
        (broken("observations/x", lambda v: v + 50), r"'x': expected values within Box.*got"),
        (broken("actions", lambda v: v + 1), r"actions: expected values within Multi.*got \d"),
        (broken("actions", lambda v: 0.9 * v), r"actions: expected whole numbers.*got \d\.\d"),
        (broken("actions", lambda v: v[:-1]), "expected 8 actions, one per reward, got 7"),
        (broken("terminations", lambda v: v[:-1]), r"d\.npz: expected 8 flags as terminations"),
        (broken("truncations", lambda v: v[:, None]), r"flags as truncations.*shape \[8, 1\]"),
        (broken("rewards", lambda v: v[0]), r"one reward per step, got an array of shape \[\]"),
        (broken("actions", lambda v: v[:, 0]), r"actions of shape \[3, 2\] for 3 rewards"),
        (broken("rewards", lambda v: v * np.inf), "rewards are not finite"),
        ({"actions": np.zeros(3), "rewards": np.zeros(3)}, "terminations missing"),
    ],
)
def test_data_of_other_spaces_are_refused_with_the_episode_and_a_remedy(data, message, tmp_path):
    np.savez(tmp_path / "d.npz", **data)
    with pytest.raises(ValueError, match=message):
        list(read_npz(tmp_path / "d.npz", importer()))


def test_vectors_outside_a_box_are_refused_and_its_edges_are_not(tmp_path):
    data, *_ = arrays()
    box = spaces.Box(-2.0, 2.0, (2,))
    data["actions"] = np.full((8, 2), 2.0)
    np.savez(tmp_path / "d.npz", **data)
    got = list(read_npz(tmp_path / "d.npz", importer(box)))
    assert got[0].prev_action[1].tolist() == [1.0, 1.0]
    np.savez(tmp_path / "d.npz", **{**data, "actions": np.full((8, 2), 2.5)})
    with pytest.raises(ValueError, match=r"within Box.*another space"):
        list(read_npz(tmp_path / "d.npz", importer(box)))


@pytest.mark.parametrize(
    ("space", "good", "bad", "message"),
    [
        (spaces.Box(0, 255, (16, 16), np.uint8), np.full((16, 16), 7), np.full((16, 16), 0.5),
         "whole numbers.*scale 0..1 to 0..255"),
        (spaces.Box(0, 255, (16, 16), np.uint8), np.full((16, 16), 7), np.full((16, 16), 300),
         "within Box.*got 300"),
        (spaces.Box(np.float32([0, -5]), np.float32([1, 5])), np.array([1, -5]),
         np.array([2, -5]), "within Box.*got 2"),
        (spaces.Box(-9, 9, (1,), np.int32), np.array([3]), np.array([0.7]), "whole numbers.*0.7"),
        (spaces.MultiDiscrete([2, 9]), np.array([1, 8]), np.array([5, 0]), "within Multi.*got 5"),
        (spaces.MultiDiscrete([3, 3], start=[0, 10]), np.array([2, 12]), np.array([2, 2]),
         "within Multi.*got 2"),
        (spaces.MultiBinary(3), np.array([1, 0, 1]), np.array([7, 0, 0]), "got 7"),
        (spaces.Text(4), np.array("ab"), np.array(3), "expected texts, got int64"),
    ],
)  # fmt: skip
def test_every_kind_of_space_is_checked_value_by_value(space, good, bad, message):
    whole = Importer(ObsConverter(space), ActionConverter(spaces.Discrete(2)))
    for value, wrong in ((good, False), (bad, True)):
        rows = {"observation": np.stack([value] * 3)}
        episode = (rows, np.array([0, 1]), np.array([1.0, 2.0]), True, "episode 7")
        if wrong:
            with pytest.raises(ValueError, match=f"episode 7: observation.*{message}"):
                whole.episode(*episode)
        else:
            assert whole.episode(*episode).num_steps == 2


def test_missing_observations_and_other_files_are_refused(tmp_path):
    data, *_ = arrays()
    del data["observations/x"]
    np.savez(tmp_path / "d.npz", **data)
    with pytest.raises(ValueError, match=r"expected observations \['room', 'x'\], got \['room'\]"):
        list(read_npz(tmp_path / "d.npz", importer()))
    whole, *_ = arrays(after=True)
    del whole["next_observations/x"]
    np.savez(tmp_path / "d.npz", **whole)
    with pytest.raises(ValueError, match=r"next_observations of \['room', 'x'\].*got \['room'\]"):
        list(read_npz(tmp_path / "d.npz", importer()))
    np.save(tmp_path / "d.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"not an \.npz file.*one array without a name"):
        list(read_npz(tmp_path / "d.npy", importer()))
    (tmp_path / "e.npz").write_text("hello")
    with pytest.raises(ValueError, match=r"not an \.npz file"):
        list(read_npz(tmp_path / "e.npz", importer()))


def test_minari_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ValueError, match=r"needs Minari.*amago\[minari\]"):
        list(_read_minari("some/data-v0", importer()))


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_minari_data_sets_are_read_by_name_and_by_folder(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    episodes = [
        minari.data_collector.EpisodeBuffer(
            id=number,
            observations={"x": [np.full(2, row, np.float32) for row in range(3)],
                          "room": [np.int64(room) for room in (1, 2, 4)]},
            actions=[np.array([2, 1]), np.array([0, 0])], rewards=[0.5, 1.0],
            terminations=[False, number == 1], truncations=[False, number == 0],
        )
        for number in range(2)
    ]  # fmt: skip
    minari.create_dataset_from_buffers(
        "amago/small-v0", episodes, observation_space=OBS, action_space=ACTION,
        algorithm_name="none", author="amago", author_email="none", code_permalink="none",
    )  # fmt: skip
    folder = tmp_path / "amago" / "small-v0"
    for source in ("amago/small-v0", str(folder), str(folder / "data" / "main_data.hdf5")):
        cut, ended = _read_minari(source, importer())
        assert cut.prev_reward.tolist() == [0.0, 0.5, 1.0] and not cut.terminal.any()
        assert ended.terminal.tolist() == [False, False, True]
        assert cut.obs["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
        assert cut.obs["room"].tolist() == [0, 1, 3]
        assert cut.prev_action[1].tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"no Minari data set 'amago/none-v0'.*minari download"):
        list(_read_minari("amago/none-v0", importer()))


def test_a_run_learns_offline_from_another_runs_replay_then_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_, **__: None)
    api.train(tiny("dark-key-to-door"), 0, tmp_path / "source")
    with TrajectoryStore.open_readonly(tmp_path / "source" / "replay") as store:
        wanted = [store.read(i) for i in store.ids.tolist()]
    config = tiny("dark-key-to-door", {"rollout.offline_epochs": 2, "run.epochs": 3})
    for name in "ab":
        create(tmp_path / name, config, 1).close()
        count, steps = import_into(tmp_path / name, "run", [str(tmp_path / "source")])
        assert count == len(wanted) and steps == sum(t.num_steps for t in wanted)
        result = api.resume(tmp_path / name).result
    assert differing(tmp_path / "a", tmp_path / "b") == []
    rows = lines(tmp_path / "a")
    assert [row["env_steps"] for row in rows[:2]] == [0, 0] and rows[2]["env_steps"] > 0
    assert "rollout/steps" not in rows[1] and rows[2]["rollout/steps"] == rows[2]["env_steps"]
    assert [row["updates"] for row in rows] == [2, 4, 6] and result["updates"] == 6
    with TrajectoryStore.open_readonly(tmp_path / "a" / "replay") as store:
        assert store.num_protected == len(wanted)
        for number, trajectory in enumerate(wanted):
            stored = store.read(-1 - number)
            np.testing.assert_array_equal(stored.prev_action, trajectory.prev_action)
            np.testing.assert_array_equal(stored.prev_reward, trajectory.prev_reward)


def test_offline_epochs_without_data_say_how_to_get_some(tmp_path: Path) -> None:
    config = tiny("wind", {"rollout.offline_epochs": 2})
    with pytest.raises(ValueError, match=r"replay is empty.*amago import npz FILE --run"):
        api.train(config, 0, tmp_path / "run")


def test_the_command_imports_npz_into_a_new_run(tmp_path: Path, capsys) -> None:
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(0)
    obs, actions, rewards, ends, cuts = [], [], [], [], []
    for _ in range(3):
        row, _ = env.reset(seed=int(rng.integers(100)))
        obs.append(row)
        for step in range(8):
            actions.append(int(rng.integers(2)))
            row, reward, terminated, truncated, _ = env.step(actions[-1])
            obs.append(row)
            rewards.append(reward)
            ends.append(terminated)
            cuts.append(truncated or step == 7)
            if terminated:
                break
    np.savez(
        tmp_path / "cart.npz", observations=np.array(obs), actions=np.array(actions),
        rewards=np.array(rewards), terminations=np.array(ends), truncations=np.array(cuts),
    )  # fmt: skip
    arguments = ("import", "npz", tmp_path / "cart.npz", "--run", tmp_path / "run")
    code, out, err = command(capsys, *arguments, "--set", "rollout.offline_epochs=1", "--seed", "4")
    assert code == 0, err
    assert f"3 trajectories, {len(rewards)} steps" in out and "amago resume" in out
    with TrajectoryStore.open_readonly(tmp_path / "run" / "replay") as store:
        assert store.num_protected == 3 and store.num_steps == len(rewards)
    code, out, _ = command(capsys, *arguments)
    assert code == 0 and "3 trajectories" in out
    code, _, err = command(capsys, *arguments, "--set", "env.id=Acrobot-v1")
    assert code == 2 and "--set is for new runs" in err
    other = (*arguments[:-1], tmp_path / "other")
    code, _, err = command(capsys, *other, "--set", "env.id=Acrobot-v1")
    assert code == 2 and "of shape [9, 6]" in err
    assert not (tmp_path / "other").exists()  # so that the corrected command can make it
