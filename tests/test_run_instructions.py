"""Instruction domains through a whole run: training, ablations, relabeling shown."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from test_run_helpers import command, tiny

import amago
from amago.config import override
from amago.envs.registry import make_vector
from amago.presets.ablations import ABLATIONS, ablate

pytestmark = pytest.mark.usefixtures("no_curves")


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instructions") / "run"
    amago.train(tiny("package-delivery"), seed=3, run_dir=folder)
    return folder


def test_relabel_shows_a_trajectory_in_words_and_pictures(
    delivered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = command(capsys, "relabel", delivered, "--choices")
    assert code == 0 and "asked" in out and "happened" in out
    for name in ("relabel.png", "choices.png"):
        assert (delivered / name).read_bytes().startswith(b"\x89PNG")


def test_a_result_has_the_scores_of_random_play_and_the_oracle(delivered: Path) -> None:
    result = json.loads((delivered / "result.json").read_text())
    random, oracle = (result["reference_scores"][name] for name in ("random", "oracle"))
    assert random["return_mean"] == result["random_return_mean"]
    assert oracle["return_mean"] >= result["return_mean"]
    assert set(random) == set(oracle) == {
        "return_mean", "return_std", "success_rate", "length_mean", "trials_mean",
        "return_per_trial", "success_per_trial",
    }  # fmt: skip


def test_relabel_of_an_unknown_trajectory_says_which_there_are(
    delivered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, error = command(capsys, "relabel", delivered, "--trajectory", "99999")
    assert code == 2 and "no trajectory 99999" in error and "0 to" in error


def test_relabel_of_a_domain_without_goals_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    amago.train(tiny("t-maze"), seed=0, run_dir=tmp_path / "run")
    code, _, error = command(capsys, "relabel", tmp_path / "run")
    assert code == 2 and "no instructions" in error


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_ablation_makes_an_update(name: str, tmp_path: Path) -> None:
    config = ablate(tiny("maze-runner"), [name])
    config = override(config, {"run.epochs": 2, "run.updates_per_epoch": 1})
    result = amago.train(config, seed=0, run_dir=tmp_path / "run").result
    assert result["episodes"] > 0
    line = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1]
    assert '"learner/skipped": 0' in line
    assert ("loss/world_model" in line) == (name == "world-model")


def test_a_loaded_agent_is_told_what_is_asked(delivered: Path) -> None:
    policy = amago.load(delivered)
    env = gymnasium.make("amago.envs.registry:amago/PackageDelivery-v0", horizon=12)
    obs, info = env.reset(seed=1)
    with pytest.raises(ValueError, match="instruction= and progress="):
        policy.predict(obs)
    action, _ = policy.predict(obs, instruction=info["instruction"], progress=info["progress"])
    assert env.action_space.contains(action)
    both = np.stack([obs, obs])
    asked = [info["instruction"], "3, 5"]
    actions, _ = policy.predict(both, instruction=asked, progress=[0, 1])
    assert actions.shape == (2,)


def test_attention_and_the_doctor_know_instructions(
    delivered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "attention.png"
    code, _, error = command(capsys, "eval", delivered, "--episodes", "2", "--attention", picture)
    assert code == 0 and picture.exists(), error
    _, out, error = command(capsys, "check-env", "amago/PackageDelivery-v0", "--steps", "200")
    assert re.search("acting +equals training", out), out + error


def test_tasks_with_other_goals_or_paid_otherwise_are_not_trained_together() -> None:
    base = amago.preset("maze-runner").env
    small, large = "amago/MazeRunner-v0?size=11", "amago/MazeRunner-v0?size=15"
    with pytest.raises(ValueError, match="equal goals"):
        make_vector(replace(base, kwargs={}, ids=(small, large)), seed=0, num_lanes=2)
    paid = "amago/MazeRunner-v0?size=11&reward_scale=1000"
    with pytest.raises(ValueError, match="no reward_scale"):
        make_vector(replace(base, kwargs={}, ids=(small, paid)), seed=0, num_lanes=2)
    with pytest.raises(ValueError, match="at least one lane"):
        make_vector(replace(base, kwargs={}, ids=(small, paid)), seed=0, num_lanes=1)
