"""What a machine does to a run's files is one clear sentence, and good data stays good."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest
from test_run_helpers import command, differing, in_another_process, lines, no_plots, tiny
from test_trust_checkpoints import listing

from amago import api
from amago.cli import main
from amago.cli.command import VERBS
from amago.cli.failures import explain
from amago.replay import pages
from amago.training.view import Silent

SHORT = {"run.epochs": 4, "run.save_interval": 1, "env.kwargs": {"horizon": 5}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert in_another_process(_train, folder) == 0
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A run whose final test is missing, so that a resume has something to do."""
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    (folder / "result.json").unlink()
    return folder


def _train(folder: Path, view: Silent | None = None) -> None:
    no_plots()
    api.train(tiny("wind", SHORT), 2, folder, preset="wind", view=view)


def _command(*arguments: str | Path, user: int | None = None) -> None:
    """A command line in this process, as another user if asked."""
    logging.getLogger().handlers.clear()
    no_plots()
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)


def _fails(capfd: pytest.CaptureFixture[str], work: Any, *arguments: Any, **named: Any) -> str:
    """The one sentence with which a command fails."""
    capfd.readouterr()
    code = in_another_process(lambda: work(*arguments, **named))
    err = capfd.readouterr().err
    assert code == 2, (code, err)
    assert "Traceback" not in err and err.count("amago: ") == 1, err
    return err


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "amago", place]).returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


class StopIn(Silent):
    """Ends the run in the middle of one epoch."""

    def __init__(self, epoch: int) -> None:
        self.left = epoch - 1

    def phase(self, name: str, fraction: float = 0.0) -> None:
        if self.left == 0 and name == "learning":
            raise KeyboardInterrupt

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self.left -= 1


def test_a_full_disk_is_one_sentence_and_the_run_goes_on_once_there_is_room(
    disk: Path, whole: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert in_another_process(_train, disk / "run", StopIn(3)) == 1
    with (disk / "other").open("wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(bytes(1024))
    err = _fails(capfd, _command, "resume", disk / "run")
    assert "the disk is full" in err
    (disk / "other").unlink()
    assert in_another_process(_command, "resume", disk / "run") == 0
    assert differing(disk / "run", whole) == []


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC, errno.EIO])
def test_a_system_that_refuses_to_write_is_one_sentence_and_the_run_goes_on_afterwards(
    number: int, whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert in_another_process(_train, run, StopIn(3)) == 1

    def refused() -> None:
        def fsync(_: int) -> None:
            raise OSError(number, os.strerror(number))

        os.fsync = fsync
        _command("resume", run)

    err = _fails(capfd, refused)
    words = {errno.EDQUOT: "quota is used up", errno.ENOSPC: "disk is full", errno.EIO: "an error"}
    assert words[number] in err
    assert in_another_process(_command, "resume", run) == 0
    assert differing(run, whole) == []


def test_a_folder_that_may_not_be_read_is_named(
    run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if os.getuid():
        pytest.skip("needs root to give up privileges")
    for folder in (run, *run.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    (run / "config.json").chmod(0o600)
    err = _fails(capfd, _command, "resume", run, user=65534)
    assert "config.json" in err and "may not be read or written" in err
    (run / "config.json").chmod(0o644)
    before = listing(run)
    err = _fails(capfd, _command, "resume", run, user=65534)
    assert "writer.lock" in err and "may not be read or written" in err
    assert listing(run) == before


def test_a_read_only_disk_is_named(
    disk: Path, run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    err = _fails(capfd, _command, "resume", disk / "run")
    assert "read-only" in err
    assert in_another_process(_command, "eval", disk / "run", "--episodes", "2", "--json") == 0


class Vanish(Silent):
    """Removes the run folder in its second epoch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        if metrics["epoch"] == 2:
            shutil.rmtree(self.folder)


def _vanish(folder: Path) -> None:
    import amago.training.view as views

    views.make_view = lambda *_: Vanish(folder)  # type: ignore[assignment]
    _command("resume", folder, "--from", "0")


def test_a_folder_that_vanishes_is_named(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    err = _fails(capfd, _vanish, run)
    assert "was it moved or removed" in err and str(run) in err


def test_a_name_that_is_too_long_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    err = _fails(capfd, _command, "train", "wind", "--run-dir", tmp_path / ("x" * 300))
    assert "name is too long" in err


def test_networks_that_do_not_fit_into_memory_are_told_and_leave_no_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    wide = ["--encoder.hidden", str(10**9), str(10**9), "--run-dir", folder]
    err = _fails(capfd, _command, "train", "wind", *wide)
    assert "not enough memory" in err
    assert not folder.exists()


@pytest.mark.parametrize("share", [0.0001, 0.3, 0.5])
def test_a_replay_that_was_cut_short_is_an_error_and_not_a_crash(
    share: float, run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = run / "replay" / "data.mdb"
    os.truncate(data, int(data.stat().st_size * share))
    err = _fails(capfd, _command, "resume", run)
    assert "data.mdb is damaged or was cut short" in err and "--from EPOCH" in err
    shutil.rmtree(run / "replay")
    assert in_another_process(_command, "resume", run, "--from", "4") == 0


def test_a_file_of_lmdb_whose_last_pages_are_free_is_accepted(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), map_size=1 << 24) as store:
        with store.begin(write=True) as txn:
            txn.put(b"kept", bytes(100))
        with store.begin(write=True) as txn:
            for number in range(20):
                txn.put(b"%d" % number, bytes(20_000))
        with store.begin(write=True) as txn:
            for number in range(20):
                txn.delete(b"%d" % number)
        for size in range(200, 206):  # the tree moves to pages that are free by now
            with store.begin(write=True) as txn:
                txn.put(b"kept", bytes(size))
    data = tmp_path / "data.mdb"
    with data.open("rb") as file:
        page_size, roots, last = pages._newest_meta(file.fileno())
        needed = max(pages._pages(file.fileno(), page_size, roots))
    assert needed < last, "no page at the end is free"
    os.truncate(data, (needed + 1) * page_size)
    pages.check_pages(data)
    with lmdb.open(str(tmp_path), map_size=1 << 24) as store, store.begin() as txn:
        assert txn.get(b"kept") == bytes(205)


@pytest.mark.parametrize("end", [b"", b'{"epoch": 3, "env_st'])
def test_metrics_that_lost_rows_are_noticed_at_the_start(
    end: bytes, run: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    metrics = run / "metrics.jsonl"
    rows = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(b"".join(rows[:2]) + end)
    api.resume(run, epochs=5)
    assert "some of its rows are lost" in caplog.text
    assert [row["epoch"] for row in lines(run)] == [1, 2, 5]


def test_files_follow_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    before = os.umask(0o002)
    try:
        api.train(tiny("wind", {"run.epochs": 1}), 0, tmp_path / "run")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "run").rglob("*")}
    assert modes.pop("checkpoints") == modes.pop("replay") == modes.pop("000001") == 0o775
    modes.pop("tensorboard", None)
    wrong = {name: oct(mode) for name, mode in modes.items() if mode != 0o664}
    assert wrong == {}


def test_a_reader_whose_checkpoint_is_replaced_meanwhile_takes_the_new_one(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from amago.saved import checkpoint, kept

    original, calls = checkpoint.load_agent, []

    def load(path: Path, agent: Any) -> None:
        if not calls:  # a trainer saves epoch 5 and removes epoch 4 before it is read
            shutil.copytree(path, path.with_name("000005"))
            kept.point(path.parent, "latest", 5)
            kept._remove(path)
        calls.append(path.name)
        original(path, agent)

    monkeypatch.setattr(checkpoint, "load_agent", load)
    api.load(run)
    assert calls == ["000004", "000005"]


def test_every_kind_of_failure_is_one_sentence_with_a_remedy() -> None:
    full = OSError(28, "No space left on device", "/x/metrics.jsonl")
    assert explain(full).startswith("/x/metrics.jsonl: the disk is full; free")
    by_lmdb = lmdb.Error("mdb_txn_commit: No space left on device")
    assert explain(by_lmdb).startswith("the disk is full")
    cut_short = lmdb.Error("mdb_txn_commit: Input/output error")
    assert explain(cut_short).startswith("the disk is full or reports an error; free")
    assert "memory" in explain(MemoryError())
    assert "--debug shows where" in explain(ZeroDivisionError("division by zero"))
    assert explain(ValueError("expected 3, got 4")) == "expected 3, got 4"


def test_a_thread_that_fails_says_so_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: Any) -> int:
        def write() -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "events")

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        return 0

    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # not pytest's
    monkeypatch.setitem(VERBS, "zoo", (full, object))
    code, _, err = command(capsys, "zoo")
    assert code == 0 and "warning: events: the disk is full" in err and "Traceback" not in err
    code, _, err = command(capsys, "zoo", "--debug")
    assert "Traceback" in err and "No space left" in err
