"""No fault of a run folder's files loses the run: the next sound checkpoint goes on."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import lmdb
import pytest
from test_run_helpers import command, differing, evidence, lines, tiny

from amago import api
from amago.replay.store import TrajectoryStore
from amago.saved import kept
from amago.sweep.jobs import next_step, plan

# Checkpoints of epochs 1 to 6 stay; 18 rollouts in a replay of 6 have turned over twice.
KEPT = {
    "run.epochs": 6, "run.save_interval": 1, "run.keep_interval": 1, "run.eval_interval": 3,
    "replay.capacity": 6, "env.kwargs": {"horizon": 5},
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    drawn, api.plot_run = api.plot_run, lambda *_, **__: None  # type: ignore[assignment]
    api.train(tiny("wind", KEPT), 3, folder, preset="wind")
    api.plot_run = drawn
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run as if it had been killed after epoch 5 was saved."""
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    shutil.rmtree(folder / "checkpoints" / "000006")
    (folder / "result.json").unlink()
    kept.point(folder / "checkpoints", "latest", 5)
    return folder


def listing(folder: Path) -> dict[str, bytes]:
    """Every file and what is in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("writer.lock", "lock.mdb")
    }


def flip(path: Path, where: float = 0.5) -> None:
    """Flip one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * where)] ^= 16
    path.write_bytes(data)


POINTERS = {
    "missing": None,
    "empty": "",
    "torn": '{"check',
    "no object": "[5]",
    "no name": "{}",
    "a checkpoint that is not there": '{"checkpoint": "000077"}',
    "no six digits": '{"checkpoint": "5"}',
    "a number": '{"checkpoint": 5}',
}


@pytest.mark.parametrize("kind", POINTERS)
def test_without_a_pointer_the_newest_checkpoint_is_found_and_named(
    kind: str, run: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pointer, text = run / "checkpoints" / "latest.json", POINTERS[kind]
    pointer.unlink() if text is None else pointer.write_text(text)
    api.resume(run)
    assert differing(run, whole) == []
    assert "latest.json names no checkpoint" in caplog.text and "epoch 5" in caplog.text


@pytest.mark.parametrize("also", [(), ("metrics.jsonl",), ("metrics.jsonl", "timing.jsonl")])
def test_a_run_that_lost_all_checkpoints_is_refused_and_nothing_is_deleted(
    also: tuple[str, ...], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run / "checkpoints")
    for name in also:
        (run / name).unlink()
    before = listing(run)
    code, _, err = command(capsys, "resume", run)
    assert code == 2 and "are gone" in err and "Nothing was changed" in err
    assert listing(run) == before
    advice = f"amago resume {run} --from 0"
    assert advice in err


def test_a_run_that_was_killed_while_its_store_was_made_begins_again(
    run: Path, whole: Path
) -> None:
    for path in [path for path in run.iterdir() if path.name != "config.json"]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with lmdb.open(str(run / "replay"), max_dbs=8):
        pass
    api.resume(run)
    assert differing(run, whole) == []


def test_beginning_again_at_epoch_1_makes_the_same_run(
    run: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run / "checkpoints")
    code, _, err = command(capsys, "resume", run, "--from", "0")
    assert code == 0, err
    assert differing(run, whole) == []


def test_a_sweep_resumes_a_run_without_pointer_and_deletes_nothing(run: Path) -> None:
    (job,) = plan(["wind"], [3], [], run.parent / "sweep")
    shutil.copytree(run, job.run_dir)
    (job.run_dir / "checkpoints" / "latest.json").unlink()
    assert next_step(job) == "resume"
    shutil.rmtree(job.run_dir / "checkpoints")
    assert next_step(job) == "resume"


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_flipped_bit_is_found_and_the_next_older_checkpoint_is_taken(
    name: str, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flip(run / "checkpoints" / "000005" / name)
    api.resume(run)
    assert f"{name} is damaged (its checksum differs)" in caplog.text
    assert "using the checkpoint of epoch 4" in caplog.text
    assert [row["epoch"] for row in lines(run)] == [1, 2, 3, 4, 5, 6]
    assert evidence(run)["latest"] == "000006"


@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer.safetensors", "state.json", "checksums.json"]
)
def test_a_missing_file_makes_the_next_older_checkpoint_go_on(
    name: str, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (run / "checkpoints" / "000005" / name).unlink()
    api.resume(run)
    assert f"{name} is missing" in caplog.text and "epoch 4" in caplog.text
    assert evidence(run)["latest"] == "000006"


def test_a_run_whose_checkpoints_are_all_damaged_is_refused_and_nothing_is_deleted(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in kept.kept(run / "checkpoints"):
        flip(path / "model.safetensors")
    before = listing(run)
    code, _, err = command(capsys, "resume", run)
    assert code == 2 and err.count("its checksum differs") == 5
    assert f"amago resume {run} --from 0" in err
    assert listing(run) == before


def test_a_checkpoint_without_checksums_is_never_evaluated(
    run: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (run / "checkpoints" / "000005" / "checksums.json").unlink()
    code, _, _ = command(capsys, "eval", run, "--episodes", "2", "--json")
    assert code == 0 and "using the checkpoint of epoch 4" in caplog.text
    code, _, err = command(capsys, "eval", run, "--episodes", "2", "--which", "5")
    assert code == 2 and "checksums.json is damaged (it is missing)" in err


def test_the_weights_of_a_damaged_checkpoint_are_never_evaluated(
    run: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    flip(run / "checkpoints" / "000005" / "model.safetensors")
    code, _, _ = command(capsys, "eval", run, "--episodes", "2", "--json")
    assert code == 0 and "using the checkpoint of epoch 4" in caplog.text
    code, _, err = command(capsys, "eval", run, "--episodes", "2", "--which", "5")
    assert code == 2 and "its checksum differs" in err


@pytest.mark.parametrize("epoch", [1, 3, 5])
def test_every_kept_checkpoint_can_be_gone_on_from_with_what_is_left_of_the_replay(
    epoch: int, run: Path, whole: Path, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    code, _, err = command(capsys, "resume", run, "--from", str(epoch))
    assert code == 0, err
    assert [row["epoch"] for row in lines(run)] == [1, 2, 3, 4, 5, 6]
    assert json.loads((run / "result.json").read_text())["epochs"] == 6
    # The replay holds rollouts 12 to 17; epoch 5 ended with 9 to 14, epoch 3 with 3 to 8.
    left = {1: "0 of the 3", 3: "0 of the 6", 5: "3 of the 6"}[epoch]
    assert f"{left} trajectories that this checkpoint had are left" in caplog.text
    with TrajectoryStore.open_readonly(run / "replay") as store:
        assert store.window[1] == 18


def test_going_back_drops_what_came_later(
    run: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amago.training.loop.train", lambda *_: None)
    tested = {"references": {}, "return_mean": 0.0}
    monkeypatch.setattr(api, "final_test", lambda run: tested)
    api.resume(run, epoch=2)
    folder = run / "checkpoints"
    assert [int(path.name) for path in kept.kept(folder)] == [2, 1]
    assert kept.find(folder) == folder / "000002"
    assert kept.find(folder, "best") is None, "the best of epochs that no longer are"
    assert [row["epoch"] for row in lines(run)] == [1, 2]


def test_an_epoch_without_checkpoint_is_refused_with_those_that_are(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(run)
    code, _, err = command(capsys, "resume", run, "--from", "9")
    assert code == 2 and "no checkpoint of epoch 9" in err and "1, 2, 3, 4, 5" in err
    assert listing(run) == before


def test_a_finished_run_that_is_given_more_epochs_gets_a_new_result(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    code, _, err = command(capsys, "resume", folder, "--epochs", "7")
    assert code == 0, err
    assert json.loads((folder / "result.json").read_text())["epochs"] == 7
    assert json.loads((folder / "config.json").read_text())["config"]["run"]["epochs"] == 7


def test_a_missing_replay_is_refused_with_advice_that_works(
    run: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(run / "replay")
    code, _, err = command(capsys, "resume", run)
    assert code == 2 and f"amago resume {run} --from EPOCH" in err
    code, _, err = command(capsys, "resume", run, "--from", "5")
    assert code == 0, err
    assert "0 of the 6 trajectories" in caplog.text


def test_only_what_amago_made_is_pruned_and_never_through_a_link(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "checkpoints", tmp_path / "elsewhere"
    for name in ("000001", "000002", "000003", "000003.tmp", "mine", "00004", "0000005", "1"):
        (folder / name).mkdir(parents=True)
    (elsewhere / "000009").mkdir(parents=True)
    (elsewhere / "000009" / "thesis.tex").write_text("years of work")
    os.symlink(elsewhere / "000009", folder / "000009")
    os.symlink(elsewhere, folder / "000008.tmp")
    kept.point(folder, "latest", 3)
    kept.prune(folder, None)
    assert sorted(path.name for path in folder.iterdir()) == [
        "0000005", "000003", "000008.tmp", "000009", "00004", "1", "latest.json", "mine",
    ]  # fmt: skip
    assert (elsewhere / "000009" / "thesis.tex").read_text() == "years of work"


def test_a_pointer_cannot_name_what_is_outside_or_linked(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    (folder / "000001").mkdir(parents=True)
    (tmp_path / "000002").mkdir()
    os.symlink(tmp_path / "000002", folder / "000002")
    values: list[Any] = ["../000002", str(tmp_path / "000002"), "000002", "", ".", "٠٠٠٠٠١"]
    for value in values:
        (folder / "latest.json").write_text(json.dumps({"checkpoint": value}))
        assert kept.find(folder) == folder / "000001", value
    assert kept.find(folder, "2") is None
