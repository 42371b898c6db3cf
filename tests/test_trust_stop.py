"""A run that is stopped keeps its last complete epoch, says so, and goes on exactly."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from test_run_helpers import differing, in_another_process, lines, no_plots, tiny

from amago import api
from amago.cli import main
from amago.saved import kept
from amago.stopping import stoppable
from amago.training.view import Silent

# Nothing is saved before the end but by being stopped.
RARE = {
    "run.epochs": 6, "run.save_interval": 100, "run.eval_interval": 100, "replay.capacity": 7,
    "env.kwargs": {"horizon": 5}, "transformer.dropout": 0.1,
}  # fmt: skip


class SignalDuring(Silent):
    """Sends a signal to its own process in the middle of a phase of one epoch."""

    def __init__(self, epoch: int, phase: str, number: int, times: int = 1) -> None:
        self.left, self.name, self.number, self.times = epoch - 1, phase, number, times

    def phase(self, name: str, fraction: float = 0.0) -> None:
        if self.left == 0 and name == self.name and fraction in (0.0, 0.5):
            for _ in range(self.times):
                os.kill(os.getpid(), self.number)

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self.left -= 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert in_another_process(_train, folder, Silent()) == 0
    return folder


def _train(folder: Path, view: Silent) -> None:
    no_plots()
    api.train(tiny("wind", RARE), 5, folder, preset="wind", view=view)


def _exits(work: Callable[..., Any], *arguments: Any) -> None:
    """Ends this process as Python would, and says what it would say."""
    logging.getLogger().handlers.clear()  # pytest's, which would keep messages to themselves
    try:
        work(*arguments)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except KeyboardInterrupt:
        os._exit(130)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("phase", ["collecting", "learning"])
def test_a_signal_saves_the_last_complete_epoch_and_the_run_goes_on_exactly(
    number: signal.Signals, phase: str, whole: Path, tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    folder = tmp_path / "run"
    code = in_another_process(_exits, _train, folder, SignalDuring(5, phase, number))
    assert code == 128 + number
    saved = kept.find(folder / "checkpoints")
    assert saved is not None and saved.name == "000004"
    err = capfd.readouterr().err
    assert "the checkpoint of epoch 4 is kept" in err and f"amago resume {folder}" in err
    assert in_another_process(_resume, folder) == 0
    assert differing(folder, whole) == []


def _resume(folder: Path) -> None:
    no_plots()
    api.resume(folder)


class Swallowed(SignalDuring):
    """Compiled code that answers the signal's exception with one of its own."""

    def phase(self, name: str, fraction: float = 0.0) -> None:
        try:
            super().phase(name, fraction)
        except BaseException as error:
            raise TypeError("could not determine the shape") from error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_whose_exception_was_replaced_still_ends_the_run_as_that_signal(
    number: signal.Signals, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    view = Swallowed(2, "learning", number)
    assert in_another_process(_exits, _train, folder, view) == 128 + number
    assert "the checkpoint of epoch 1 is kept" in capfd.readouterr().err


def test_a_run_stopped_twice_still_goes_on_exactly(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = SignalDuring(2, "learning", signal.SIGTERM)
    assert in_another_process(_exits, _train, folder, first) == 143
    second = SignalDuring(3, "collecting", signal.SIGINT)
    assert in_another_process(_exits, lambda: api.resume(folder, view=second)) == 130
    assert [path.name for path in kept.kept(folder / "checkpoints")] == ["000003"]
    assert in_another_process(_resume, folder) == 0
    assert differing(folder, whole) == []
    if importlib.util.find_spec("tensorboard") is not None:
        (events,) = (folder / "tensorboard").iterdir()
        (of_whole,) = (whole / "tensorboard").iterdir()
        assert events.read_bytes().count(b"loss/critic") == len(lines(folder)) - 1
        assert of_whole.read_bytes().count(b"loss/critic") == len(lines(folder)) - 1


def test_a_run_stopped_in_its_first_epoch_begins_again(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    view = SignalDuring(1, "collecting", signal.SIGTERM)
    assert in_another_process(_exits, _train, folder, view) == 143
    assert "before an epoch was complete" in capfd.readouterr().err
    assert in_another_process(_resume, folder) == 0
    assert differing(folder, whole) == []


def test_a_second_signal_ends_the_process_at_once_and_harms_nothing(
    whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    code = in_another_process(_exits, _die_while_saving, folder)
    assert code == -signal.SIGTERM
    assert in_another_process(_resume, folder) == 0
    assert differing(folder, whole) == []


def _die_while_saving(folder: Path) -> None:
    from amago.saved import checkpoint

    original = checkpoint.write_json

    def write(path: Path, value: Any) -> None:
        if path.parent.name == "000003.tmp":
            os.kill(os.getpid(), signal.SIGTERM)
        original(path, value)

    checkpoint.write_json = write  # type: ignore[assignment]
    _train(folder, SignalDuring(4, "learning", signal.SIGTERM))


def test_the_command_line_ends_with_the_signals_code_and_says_how_to_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert in_another_process(_train, folder, Silent()) == 0
    code = in_another_process(_exits, _command_and_signal, folder)
    assert code == 143
    out = capfd.readouterr()
    assert "the checkpoint of epoch 7 is kept" in out.err and "Traceback" not in out.err


def _command_and_signal(folder: Path) -> None:
    import amago.training.view as views

    no_plots()
    views.make_view = lambda *_: SignalDuring(2, "learning", signal.SIGTERM)  # type: ignore
    main(["resume", str(folder), "--epochs", "9"])


def test_a_signal_while_a_run_is_made_leaves_nothing_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("amago.training.assemble.make_lanes", stopped)
    folder = tmp_path / "run"
    assert in_another_process(_exits, _train, folder, Silent()) == 143
    assert not folder.exists()


_IMPORTS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts with &
class Signal:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), int(sys.argv[2]))
sys.meta_path.insert(0, Signal())
from amago.cli import main
main(["train", "wind", "--run-dir", sys.argv[3]])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["amago.cli.verify", "torch"])
def test_a_signal_while_the_command_is_imported_ends_it_with_its_code(
    module: str, number: signal.Signals, tmp_path: Path
) -> None:
    code = [sys.executable, "-c", _IMPORTS, module, str(int(number)), str(tmp_path / "run")]
    done = subprocess.run(code, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 128 + number, done.stderr
    assert "stopped" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


class Cursed(gym.Env[Any, Any]):
    """Raises at its n-th step ever."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    left = 10**9

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        Cursed.left -= 1
        if Cursed.left < 0:
            raise KeyError("the simulator's licence has expired")
        self.time += 1
        return np.full(2, self.time / 4, np.float32), 1.0, False, self.time == 4, {}


def test_an_error_in_an_environment_keeps_the_last_complete_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    # Three lanes of one rollout of 4 steps per epoch: 12 steps each, no evaluation before the end.
    config = tiny("gym", {**RARE, "env.kwargs": {}, "rollout.steps_per_epoch": 4,
                          "replay.context_length": 4})  # fmt: skip
    monkeypatch.setattr(Cursed, "left", 12 * 3 + 5)
    with pytest.raises(Exception, match="licence has expired"):
        api.train(config, 0, tmp_path / "run", env=Cursed, check=False)
    assert "the checkpoint of epoch 3 is kept" in caplog.text
    monkeypatch.setattr(Cursed, "left", 10**9)
    api.resume(tmp_path / "run", env=Cursed)
    assert [row["epoch"] for row in lines(tmp_path / "run")] == [1, 2, 3, 4, 5, 6]


def test_signals_mean_what_they_meant_before_once_a_run_is_over() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stoppable():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_an_ignored_interrupt_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_in_another_thread_leaves_signals_alone() -> None:
    seen = []

    def work() -> None:
        with stoppable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]
