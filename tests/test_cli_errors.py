"""What users do wrong, and that each message names what came and what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest
from test_run_helpers import command, flags, sign, tiny

import amago
from amago import api
from amago.replay.store import TrajectoryStore
from amago.types import ActionSpec, EnvSpec, ObsSpec

# The arguments of wind's constructor have no flag, since the preset gives none.
FEW = flags(tiny("wind", {"env.kwargs": {}}), amago.preset("wind"))
GYM = flags(tiny("gym"), amago.preset("gym"))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "plot_run", lambda *_: None)


def test_a_value_of_the_wrong_kind_is_told_in_words_which_kinds_there_are() -> None:
    for setting, value, told in (
        ("agent.discounts", 0.5, "auto, wide, single, horizon or a list of float, got 0.5"),
        ("env.trials", "three", "int or None, got 'three'"),
        ("env.wrappers", "x:Y", "a list of str, got 'x:Y'"),
    ):
        with pytest.raises(ValueError, match=f"{setting} must be {told}"):
            amago.override(amago.preset("gym"), {setting: value})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    drawn, api.plot_run = api.plot_run, lambda *_, **__: None  # type: ignore[assignment]
    api.train(tiny("wind"), 0, folder, preset="wind")
    api.plot_run = drawn
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A finished run to damage."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


BAD_LINES: dict[str, tuple[list[str], list[str]]] = {
    "an unknown verb": (["trian"], ["'trian'", "train, resume, eval"]),
    "an unknown preset": (["train", "t-mase"], ["'t-mase'", "did you mean t-maze", "presets"]),
    "an unknown preset of a sweep": (["sweep", "wnd"], ["'wnd'", "did you mean wind"]),
    "an unknown preset to list": (["presets", "wnd"], ["'wnd'", "did you mean wind"]),
    "an unknown environment": (
        ["train", "gym", *GYM, "--env.id", "CartPol-v1"],
        ["'CartPol-v1'", "did you mean CartPole-v1", "module:Name-v0"],
    ),
    "an environment of a missing module": (
        ["train", "gym", *GYM, "--env.id", "no_such_module:X-v0"],
        ["no_such_module", "install it"],
    ),
    "an unknown argument of the environment": (
        ["train", "t-maze", "--env.kwargs.coridor", "3"],
        ["coridor", "accepts", "corridor"],
    ),
    "a bad argument of the environment": (
        ["train", "t-maze", "--env.kwargs.corridor", "0"],
        ["corridor", "at least 1", "got 0"],
    ),
    "negative epochs": (["train", "--epochs", "-1"], ["--run.epochs", "at least 1", "-1"]),
    "epochs that are no number": (["train", "--epochs", "many"], ["--epochs", "many", "INT"]),
    "no lanes": (["train", "--env.num-lanes", "0"], ["--env.num-lanes", "at least 1", "got 0"]),
    "heads that do not divide the width": (
        ["train", "--transformer.model-dim", "66", "--transformer.num-heads", "4"],
        ["--transformer.model-dim", "multiple of", "--transformer.num-heads", "66 and 4"],
    ),
    "an unknown memory": (["train", "--memory", "lstm"], ["lstm", "transformer", "feedforward"]),
    "an unknown option": (["train", "--no-such-option", "3"], ["--no-such-option", "--help"]),
    "learned positions without a horizon": (
        ["train", "gym", *GYM, "--env.id", "test_run_helpers:Bad-endless-v0",
         "--transformer.position", "learned"],
        ["--transformer.position learned", "--env.horizon", "sinusoid"],
    ),
    "no horizon and no context length": (
        ["train", "wind", *FEW, "--env.id", "test_run_helpers:Bad-endless-v0"],
        ["Bad-endless-v0", "no known horizon", "--replay.context-length", "--env.horizon"],
    ),
    "actions of an unsupported kind": (
        ["train", "gym", *GYM, "--env.id", "test_run_helpers:Bad-actions-v0"],
        ["bounded Box action space", "MultiDiscrete([2])", "TransformAction"],
    ),
    "observations that are not numbers": (
        ["train", "gym", *GYM, "--env.id", "test_run_helpers:Bad-nan-v0",
         "--run.updates-per-epoch", "30"],
        ["NaN", "observations"],
    ),
    "a device that does not exist": (
        ["train", "wind", *FEW, "--run.device", "gpu9"], ["--run.device gpu9", "auto or cpu"],
    ),
    "a discount of one": (
        ["train", "--agent.acting-discount", "1.0"], ["--agent.acting-discount", "[0, 1)", "1.0"],
    ),
    "a discount of one among many": (
        ["train", "--agent.discounts", "0.9", "1.0"], ["--agent.discounts", "[0, 1)", "1.0"],
    ),
    "a sweep without presets": (["sweep"], ["at least one preset", "amago sweep t-maze"]),
    "a setting without a value": (
        ["sweep", "wind", "--set", "memory"], ["--set", "key=value", "'memory'", "memory=gru"],
    ),
    "an unknown setting in a sweep": (
        ["sweep", "wind", "--seeds", "0", "--set", "optim.speed=1"], ["optim.speed"],
    ),
    "a value that a setting cannot have in a sweep": (
        ["sweep", "wind", "--seeds", "0", "--set", "run.epochs=-1"], ["run.epochs", "-1"],
    ),
    "no jobs at once": (["sweep", "wind", "--jobs", "0"], ["--jobs", "at least 1"]),
    "a folder that is not a run": (["resume", "."], ["not a run", "config.json", "amago train"]),
    "a run that is not there": (["eval", "nowhere"], ["nowhere", "not a run"]),
    "no run at all": (["resume"], ["resume", "--help"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_command_line_is_refused_with_a_message(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, expected = BAD_LINES[kind]
    code, _, err = command(capsys, *arguments)
    assert code == 2
    assert [part for part in expected if part not in err] == [], err


def test_a_folder_with_something_in_it_is_not_overwritten(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = command(capsys, "train", "wind", *FEW, "--run-dir", run)
    assert code == 2
    assert f"{run} is not empty" in err and f"amago resume {run}" in err and "--run-dir" in err


def test_a_run_that_could_not_start_may_be_started_again_in_the_same_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["train", "gym", *GYM, "--run-dir", tmp_path / "new", "--env.id"]
    assert command(capsys, *line, "CartPol-v1")[0] == 2
    code, _, err = command(capsys, *line, "CartPole-v1")
    assert code == 0, err


def test_no_run_folder_is_announced_that_does_not_come_to_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command(capsys, "train", "gym", *GYM, "--env.id", "CartPol-v1")
    assert not list(Path().rglob("config.json"))


def test_a_run_without_a_checkpoint_cannot_be_evaluated(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run / "checkpoints")
    code, _, err = command(capsys, "eval", run)
    assert code == 2 and "no checkpoint" in err and f"amago resume {run}" in err


def test_a_checkpoint_that_is_not_there_is_told_from_those_that_are(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for which in ("77", "worst"):
        code, _, err = command(capsys, "eval", run, "--which", which)
        assert code == 2 and f"'{which}'" in err
        assert "latest" in err and "best" in err, f"does not say what there is: {err}"


def test_no_episodes_are_refused_by_that_name(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = command(capsys, "eval", run, "--episodes", "0")
    assert code == 2 and "episode" in err and "at least 1" in err and "got 0" in err


def test_a_film_of_an_unknown_format_is_refused_before_anything_is_played(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []
    monkeypatch.setattr("amago.evaluation.evaluate.play", lambda *a, **k: played.append(1))
    code, _, err = command(capsys, "eval", run, "--episodes", "2", "--video", "film.avi")
    assert code == 2 and ".mp4 or .gif" in err and "film.avi" in err
    assert not played


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{half", "not valid JSON"),
        ("", "not valid JSON"),
        ("[]", "config.json"),
        ('{"seed": 0}', "config.json"),
        ('{"seed": 0, "preset": "", "config": {"run": {"speed": 1}}}', "speed"),
        ('{"seed": 0, "preset": "", "config": {"run": {"epochs": "ten"}}}', "epochs"),
    ],
)
def test_a_config_file_that_was_damaged_is_named(
    text: str, expected: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "config.json").write_text(text)
    for verb in ("resume", "eval"):
        code, _, err = command(capsys, verb, run)
        assert code == 2 and expected in err, err


@pytest.mark.parametrize("damage", ["truncated", "overwritten", "missing"])
@pytest.mark.parametrize("verb", ["eval", "resume"])
def test_weights_that_were_damaged_are_named(
    damage: str, verb: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (weights,) = (run / "checkpoints").glob("*/model.safetensors")
    if damage == "truncated":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif damage == "overwritten":
        weights.write_bytes(b"not a tensor at all" * 100)
    else:
        weights.unlink()
    code, _, err = command(capsys, verb, run)
    assert code == 2 and "model.safetensors" in err, err


def test_weights_of_another_network_are_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = json.loads((run / "config.json").read_text())
    header["config"]["transformer"]["model_dim"] *= 2
    (run / "config.json").write_text(json.dumps(header))
    code, _, err = command(capsys, "eval", run)
    assert code == 2 and "does not fit this agent" in err and "config.json changed" in err


def test_a_checkpoint_of_another_version_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = (run / "checkpoints").glob("*/state.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    sign(path.parent)  # as another version would have written it
    code, _, err = command(capsys, "resume", run)
    assert code == 2 and "format 99" in err and "the amago that wrote it" in err


def test_a_replay_of_another_version_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with lmdb.open(str(run / "replay"), max_dbs=8) as store:
        names = [bytes(key) for key, _ in store.begin().cursor()]
        meta = store.open_db(next(name for name in names if b"meta" in name))
        with store.begin(write=True) as txn:
            assert txn.replace(b"format", b"99", db=meta) == b"2"
    code, _, err = command(capsys, "resume", run)
    assert code == 2 and "format 2" in err and "format 99" in err and "replay" in err


def test_a_replay_of_other_spaces_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(run / "replay")
    other = EnvSpec(
        "other", {"observation": ObsSpec((9,), "float32")}, ActionSpec("discrete", 2), 5
    )
    TrajectoryStore(run / "replay", other, 10).close()
    code, _, err = command(capsys, "resume", run)
    assert code == 2 and "other spaces" in err and "(9" in err.replace("[", "("), err


def test_the_environment_of_a_run_with_a_class_of_its_own_is_asked_for(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**header, "custom": {"env": "Mine"}}))
    for verb in ("eval", "resume"):
        code, _, err = command(capsys, verb, run)
        assert code == 2 and "env=Mine" in err and "amago.resume" in err


def test_a_working_folder_that_is_gone_does_not_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert command(capsys, "presets")[0] == 0


def test_a_terminal_that_knows_ascii_only_is_no_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "amago", "presets"], capture_output=True, text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0 and "wind" in done.stdout, done.stderr
