"""A run has one writer at a time, from before its files are read until it is closed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_run_helpers import command, in_another_process, no_plots, tiny
from test_trust_checkpoints import listing

from amago import api
from amago.replay.guard import LOCK_NAME, WriterLock
from amago.saved import kept
from amago.training import start
from amago.training.view import Silent

HOLD = """
import sys, time
from pathlib import Path
from amago.replay.guard import WriterLock
lock = WriterLock(Path(sys.argv[1]), "the run")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    api.train(tiny("wind", {"run.epochs": 1}), 0, tmp_path / "run", preset="wind")
    return tmp_path / "run"


def test_a_second_resume_changes_nothing_because_the_lock_comes_before_all_reading(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, run], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        before, chosen = listing(run), []
        monkeypatch.setattr(kept, "newest_sound", lambda *_: chosen.append(1))
        for line in (["resume", run], ["resume", run, "--from", "0"]):
            code, _, err = command(capsys, *line)
            assert code == 2 and f"process {holder.pid} has it open" in err
            assert "nothing was changed" in err
        assert listing(run) == before and chosen == []
    finally:
        holder.kill()
        holder.wait()


class _TwoAtOnce(Silent):
    """Tries to resume the run that it watches."""

    def __init__(self, run: Path) -> None:
        self.run, self.codes = run, list[int]()

    def phase(self, name: str, fraction: float = 0.0) -> None:
        if name == "learning" and not self.codes:
            self.codes.append(in_another_process(_resume, self.run))


def _resume(folder: Path) -> None:
    no_plots()
    try:
        api.resume(folder)
    except ValueError as error:
        os._exit(7 if "only writer" in str(error) else 8)


def test_a_run_in_progress_cannot_be_resumed_by_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    view = _TwoAtOnce(tmp_path / "run")
    result = api.train(tiny("wind"), 0, tmp_path / "run", view=view).result
    assert view.codes == [7] and result["epochs"] == 2


def test_a_killed_writer_leaves_no_lock_behind(run: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, run], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    holder.kill()
    holder.wait()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            WriterLock(run, "the run").release()
            return
        except ValueError:
            time.sleep(0.02)
    raise AssertionError("the lock outlived its process")


def test_a_folder_that_is_no_run_gets_no_lock_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a run"):
        start.restore(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_which_only_a_lock_was_made_may_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    for name in (LOCK_NAME, "config.json.tmp"):  # what a kill right after the start leaves
        (tmp_path / name).write_text("")
    assert api.train(tiny("wind", {"run.epochs": 1}), 0, tmp_path).result["epochs"] == 1
