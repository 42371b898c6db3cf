"""Algorithm Distillation: memory-free agents that really learn, and a run that imitates them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from test_run_helpers import command, lines

from amago import api
from amago.baselines import distillation
from amago.baselines.catalogue import METHODS
from amago.baselines.histories import _TabularLearners, make_histories, source_task, worlds_of
from amago.baselines.settings import HistorySettings
from amago.config import override
from amago.envs.catalogue import preset
from amago.envs.settings import EnvSettings
from amago.replay.store import TrajectoryStore
from amago.types import BARE_KEY, Timestep

DKD = "dark-key-to-door"
METHOD = "algorithm-distillation"
SMALL = [
    "--size", "tiny", "--env.kwargs.grid", "3", "--env.kwargs.horizon", "60",
    "--env.kwargs.trial-limit", "10", "--replay.context-length", "20", "--replay.batch-rows", "200",
    "--histories.count", "12", "--env.num-lanes", "2", "--env.eval-lanes", "4",
    "--run.eval-episodes", "4", "--run.final-eval-episodes", "4", "--run.epochs", "3",
    "--run.updates-per-epoch", "2", "--run.report", "False", "--run.threads", "1",
]  # fmt: skip


def _room(**kwargs: int) -> EnvSettings:
    return EnvSettings(id="amago/DarkKeyToDoor-v0", kwargs=kwargs)


def test_memory_free_agents_really_improve_on_the_papers_room() -> None:
    env = _room(grid=8, trial_limit=50, horizon=2000)
    histories = make_histories(env, HistorySettings(count=40), 0)
    earned = np.stack([history.prev_reward[1:] for history in histories])
    tenths = earned.reshape(40, 10, -1).sum(2).mean(0)
    assert tenths[-1] > 4 * tenths[0] and tenths[-1] > 25
    assert len({history.world_seed for history in histories}) == 40, "one world each"


def test_a_learner_takes_what_it_was_paid_for() -> None:
    task = source_task(_room(grid=3, trial_limit=10, horizon=50))
    learners = _TabularLearners(task, HistorySettings(noise=(0.0, 0.0)), 0)

    def row(time: int, cell: tuple[int, int], reward: float, first: bool) -> Timestep:
        obs = np.array([[cell[0] / 3, cell[1] / 3, 0, 0]], np.float32)
        flag = np.array([False])
        return Timestep({BARE_KEY: obs}, np.array([0]), np.array([reward], np.float32),
                        np.array([time]), np.array([first]), flag, flag, np.array([0]))  # fmt: skip

    _, state = learners.act(row(0, (1, 1), 0.0, True), learners.initial_state(1))
    state.action = np.array([2])
    _, state = learners.act(row(1, (2, 1), 1.0, False), state)
    here = (1 * 3 + 1) * 2
    assert state.values[0, here].tolist() == [0.0, 0.0, 0.3, 0.0, 0.0]
    action, state = learners.act(row(2, (1, 1), 0.0, False), state)
    assert action[0] == 2, "without noise, the rewarded action again"
    _, state = learners.act(row(0, (1, 1), 0.0, True), state)
    assert not state.values.any(), "a new rollout is a new agent"


def test_worlds_that_are_held_out_have_no_history() -> None:
    env = _room(grid=2, trial_limit=5, horizon=10)
    every = make_histories(env, HistorySettings(count=60), 0)
    known = worlds_of(env, np.array([history.world_seed for history in every]))
    held_out = set(list(known)[:8])
    rest = make_histories(env, HistorySettings(count=20), 0, held_out)
    assert not worlds_of(env, np.array([history.world_seed for history in rest])) & held_out
    with pytest.raises(ValueError, match="too few worlds"):
        make_histories(env, HistorySettings(count=1), 0, known | worlds_of(env, np.arange(500)))


def test_histories_are_made_in_dark_key_to_door_alone() -> None:
    with pytest.raises(ValueError, match="Dark Key-To-Door"):
        make_histories(EnvSettings(id="amago/TMaze-v0"), HistorySettings(count=1), 0)


@pytest.fixture(scope="module")
def distilled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distilled") / "run"
    from amago.cli import main

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(Figure, "savefig", lambda figure, path, **_: Path(path).touch())
        main(["baseline", METHOD, DKD, *SMALL, "--run-dir", str(folder)])
    assert not end.value.code
    return folder


def test_the_run_learns_from_histories_alone(distilled: Path) -> None:
    header = json.loads((distilled / "config.json").read_text())
    assert header["baseline"]["method"] == METHOD
    assert header["baseline"]["settings"]["count"] == 12
    rows = lines(distilled)
    assert [row["env_steps"] for row in rows] == [12 * 60] * 3, "those of the histories"
    assert all("rollout/return_mean" not in row for row in rows)
    assert rows[-1]["updates"] == 6 and "eval/return_mean" in rows[-1]
    result = json.loads((distilled / "result.json").read_text())
    assert result["env_steps"] == 12 * 60 and len(result["references"]["oracle"]) == 10


def test_the_worlds_of_the_final_test_are_held_out(distilled: Path) -> None:
    from amago.saved.header import read_config

    config = read_config(distilled)
    tested = worlds_of(config.env, distillation._test_seeds(config, 0))
    with TrajectoryStore.open_readonly(distilled / "replay") as store:
        seeds = [store.read(number).world_seed for number in store.ids.tolist()]
    assert len(seeds) == 12
    assert not worlds_of(config.env, np.array(seeds)) & tested


def test_the_run_plays_and_goes_on_like_our_own(
    distilled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_, **__: None)
    code, out, err = command(capsys, "eval", distilled, "--episodes", "2", "--json")
    assert code == 0 and json.loads(out)["episodes"] == 2, err
    code, _, err = command(capsys, "resume", distilled, "--epochs", "+1")
    assert code == 0, err
    rows = lines(distilled)
    assert len(rows) == 4 and rows[-1]["env_steps"] == 12 * 60, "still from histories alone"


def test_next_actions_become_predictable(tmp_path: Path) -> None:
    changes: dict[str, Any] = {**METHODS[METHOD].changes, "run.epochs": 8, "run.threads": 1,
        "env.kwargs": {"grid": 3, "trial_limit": 10, "horizon": 60}, "replay.context_length": 30,
        "replay.batch_rows": 600, "env.num_lanes": 2, "env.eval_lanes": 2, "run.eval_episodes": 2,
        "run.final_eval_episodes": 2, "run.updates_per_epoch": 5, "run.report": False,
        "run.eval_interval": 8, "optim.learning_rate": 1e-2}  # fmt: skip
    changes = {key: value for key, value in changes.items() if not key.startswith("env.kwargs.")}
    config = override(preset(DKD, "tiny"), changes)
    distillation.prepare(tmp_path / "run", config, 0, HistorySettings(count=40), preset=DKD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "plot_run", lambda *_, **__: None)
        api.resume(tmp_path / "run", progress=False)
    losses = [row["loss/cloning"] for row in lines(tmp_path / "run")]
    assert losses[0] > 1.45, "five actions are equally likely at first"
    assert losses[-1] < losses[0] - 0.05


@pytest.mark.slow
def test_a_distilled_agent_improves_within_a_rollout_in_rooms_that_are_new(tmp_path: Path) -> None:
    changes: dict[str, Any] = {**METHODS[METHOD].changes, "run.epochs": 8, "run.threads": 1,
        "env.kwargs": {"grid": 3, "trial_limit": 20, "horizon": 300}, "replay.context_length": 80,
        "env.num_lanes": 2, "run.updates_per_epoch": 40, "run.report": False,
        "run.final_eval_episodes": 64, "run.eval_interval": 8}  # fmt: skip
    changes = {key: value for key, value in changes.items() if not key.startswith("env.kwargs.")}
    config = override(preset(DKD), changes)
    made = distillation.prepare(tmp_path / "run", config, 0, HistorySettings(count=200), preset=DKD)
    assert made["return_per_block"][-1] > 1.5 * made["return_per_block"][0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "plot_run", lambda *_, **__: None)
        result = api.resume(tmp_path / "run", progress=False).result
    random, tenths = result["random_return_mean"], result["return_per_block"]
    assert result["return_mean"] > 2 * random
    assert np.mean(tenths[-3:]) > 1.3 * np.mean(tenths[:1]), "it goes on learning as it plays"
