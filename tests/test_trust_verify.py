"""`amago verify` finds what is wrong with a run, changes nothing, and its exit code says so."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lmdb
import numpy as np
import pytest
from test_run_helpers import command, tiny
from test_trust_checkpoints import flip, listing
from test_trust_records import flipped, rewrite

from amago import api
from amago.goals import Advance, follow
from amago.ragged import Ragged
from amago.replay.codec import encode
from amago.replay.reader import TrajectoryReader
from amago.types import Array, Trajectory


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    drawn, api.plot_run = api.plot_run, lambda *_, **__: None  # type: ignore[assignment]
    config = tiny("maze-runner", {"run.epochs": 2, "run.save_interval": 1, "run.keep_interval": 1})
    api.train(config, 0, folder, preset="maze-runner")
    api.plot_run = drawn
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_a_sound_run_is_sound_and_stays_as_it_is(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(run)
    code, out, err = command(capsys, "verify", run)
    assert code == 0 and f"{run}: sound" in out and "PROBLEM" not in out, out + err
    assert "2 epochs" in out and "parameters, as the settings say" in out
    assert listing(run) == before


def _other_widths(run: Path) -> None:
    header = json.loads((run / "config.json").read_text())
    header["config"]["encoder"]["hidden"] = [17]
    (run / "config.json").write_text(json.dumps(header))


def _other_counters(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows[-1]["env_steps"] += 1
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run / "metrics.jsonl").write_text(text)


def _no_goals(run: Path) -> None:
    with lmdb.open(str(run / "replay"), max_dbs=8) as env, env.begin(write=True) as txn:
        meta = env.open_db(b"meta", txn=txn)
        other = bytearray(txn.get(b"goals", db=meta))
        other[0] ^= 1
        txn.put(b"goals", bytes(other), db=meta)


PROBLEMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "weights": (lambda r: flip(r / "checkpoints/000001/model.safetensors"), "checksum differs"),
    "a lost optimiser": (
        lambda r: (r / "checkpoints/000002/optimizer.safetensors").unlink(), "is missing",
    ),
    "a lost pointer": (lambda r: (r / "checkpoints/latest.json").unlink(), "latest.json"),
    "a wrong pointer": (
        lambda r: (r / "checkpoints/best.json").write_text('{"checkpoint": "000099"}'), "best.json",
    ),
    "lost checkpoints": (lambda r: shutil.rmtree(r / "checkpoints"), "checkpoints are gone"),
    "a lost replay": (lambda r: shutil.rmtree(r / "replay"), "replay"),
    "a record": (lambda r: rewrite(r / "replay", 1, flipped), "1 of 6 trajectories are damaged"),
    "the store": (lambda r: os.truncate(r / "replay/data.mdb", 9000), "cut short"),
    "goals": (_no_goals, "stored goal counts do not match"),
    "lost rows": (lambda r: (r / "metrics.jsonl").write_text(""), "rows are lost"),
    "counters": (_other_counters, "env_steps"),
    "settings": (_other_widths, "does not fit"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PROBLEMS)
def test_what_is_wrong_with_a_run_is_found(
    kind: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, expected = PROBLEMS[kind]
    damage(run)
    code, out, _ = command(capsys, "verify", run)
    problems = [line for line in out.splitlines() if line.startswith("PROBLEM")]
    assert code == 1 and any(expected in line for line in problems), out


def _other_reward(trajectory: Trajectory) -> Trajectory:
    reward = trajectory.prev_reward.copy()
    reward[2] += 1.0
    return replace(trajectory, prev_reward=reward)


def _other_end(trajectory: Trajectory) -> Trajectory:
    terminal = trajectory.terminal.copy()
    terminal[1] = True
    return replace(trajectory, terminal=terminal)


def _other_goals(trajectory: Trajectory) -> Trajectory:
    assert trajectory.achieved is not None
    offsets, goals = trajectory.achieved
    return replace(trajectory, achieved=(offsets, np.roll(goals, 1, axis=1)))


WRONG = {"reward": _other_reward, "terminal": _other_end, "achieved": _other_goals}


@pytest.mark.parametrize("what", WRONG)
def test_a_stored_rollout_that_the_environment_would_not_make_is_found(
    what: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with TrajectoryReader(run / "replay") as store:
        wrong = WRONG[what](store.read(0))
    rewrite(run / "replay", 0, lambda _: encode(wrong))  # its checksums are right
    code, out, _ = command(capsys, "verify", run)
    assert code == 1 and "ok       replay" in out
    assert f"PROBLEM  relabeling: trajectory 0 as stored: {what} is" in out


def test_a_rule_of_relabeling_that_the_environment_does_not_share_is_found(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = command(capsys, "verify", run)
    assert code == 0 and "12 rollouts as the environment has them" in out

    def late(instruction: Array, achieved: Ragged) -> Advance:
        """The rule with every goal one row late, but those of the last row."""
        offsets, goals = achieved
        return follow(instruction, (np.concatenate([[0], offsets[:-2], offsets[-1:]]), goals))

    monkeypatch.setattr("amago.replay.relabel.follow", late)
    code, out, _ = command(capsys, "verify", run)
    assert code == 1 and "relabeled: " in out and "with the environment it" in out, out


def test_an_environment_that_does_not_repeat_itself_is_replaced_by_a_slow_rule(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amago.check.audit._play", lambda *_: None)
    code, out, _ = command(capsys, "verify", run)
    assert code == 0 and "12 rollouts as a slow version of the rule has them" in out
    with TrajectoryReader(run / "replay") as store:
        wrong = _other_reward(store.read(5))
    rewrite(run / "replay", 5, lambda _: encode(wrong))
    code, out, _ = command(capsys, "verify", run)
    assert code == 1 and "trajectory 5 as stored: reward is" in out


def test_a_baseline_that_keeps_no_weights_is_sound_without_checkpoints(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("checkpoints", "replay"):
        shutil.rmtree(run / folder)
    assert command(capsys, "verify", run)[0] == 1  # amago's own run has lost them
    header = json.loads((run / "config.json").read_text())
    header["baseline"] = {"method": "recurrent-ppo", "keeps_weights": False, "settings": {}}
    (run / "config.json").write_text(json.dumps(header))
    code, out, _ = command(capsys, "verify", run)
    assert code == 0 and f"{run}: sound" in out, out


def test_a_damaged_control_is_found(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    control = Path(shutil.copytree(run, run / "control"))
    code, out, _ = command(capsys, "verify", run)
    assert code == 0 and "ok       control: replay" in out, out
    (control / "metrics.jsonl").write_text("")
    code, out, _ = command(capsys, "verify", run)
    assert code == 1 and "PROBLEM  control: metrics" in out, out


def test_what_is_not_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = command(capsys, "verify", tmp_path)
    assert code == 2 and "not a run" in err
