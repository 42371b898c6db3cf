"""The verbs of the command line: one module each, parsed by tyro."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import select
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from amago.checks import printable
from amago.cli.baseline import BaselineOptions, baseline
from amago.cli.bench import BenchOptions, bench
from amago.cli.board import BoardOptions, board
from amago.cli.check_env import CheckEnvOptions, check_env
from amago.cli.doctor import DoctorOptions, doctor
from amago.cli.evaluate import EvalOptions, evaluate
from amago.cli.examples import ExamplesOptions, examples
from amago.cli.export import ExportOptions, export
from amago.cli.failures import explain
from amago.cli.import_data import ImportOptions, import_data
from amago.cli.memory import MemoryOptions, memory
from amago.cli.pack import PackOptions, pack
from amago.cli.play import PlayOptions, play
from amago.cli.presets import PresetsOptions, presets
from amago.cli.relabel import RelabelOptions, relabel
from amago.cli.report import ReportOptions, report
from amago.cli.reproduce import ReproduceOptions, reproduce
from amago.cli.suite import SuiteOptions, suite
from amago.cli.sweep import SweepOptions, sweep
from amago.cli.train import ResumeOptions, TrainOptions, resume, train
from amago.cli.tune import TuneOptions, tune
from amago.cli.verify import VerifyOptions, verify
from amago.cli.watch import WatchOptions, watch
from amago.cli.zoo import ZooOptions, zoo
from amago.envs.catalogue import PRESETS
from amago.stopping import Terminated, stoppable

WIDTH = 80
"""Columns of the narrowest terminal that everything fits in."""
VERBS: dict[str, tuple[Callable[[Sequence[str]], int], type]] = {
    "train": (train, TrainOptions),
    "resume": (resume, ResumeOptions),
    "eval": (evaluate, EvalOptions),
    "report": (report, ReportOptions),
    "watch": (watch, WatchOptions),
    "play": (play, PlayOptions),
    "zoo": (zoo, ZooOptions),
    "pack": (pack, PackOptions),
    "export": (export, ExportOptions),
    "check-env": (check_env, CheckEnvOptions),
    "doctor": (doctor, DoctorOptions),
    "memory": (memory, MemoryOptions),
    "verify": (verify, VerifyOptions),
    "import": (import_data, ImportOptions),
    "examples": (examples, ExamplesOptions),
    "presets": (presets, PresetsOptions),
    "relabel": (relabel, RelabelOptions),
    "sweep": (sweep, SweepOptions),
    "baseline": (baseline, BaselineOptions),
    "tune": (tune, TuneOptions),
    "suite": (suite, SuiteOptions),
    "board": (board, BoardOptions),
    "reproduce": (reproduce, ReproduceOptions),
    "bench": (bench, BenchOptions),
}


def run(arguments: Sequence[str] | None = None) -> None:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of ASCII shows ? for ×, and goes on
            stream.reconfigure(errors="replace")
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        sys.exit(0)
    if arguments[0] == "--version":
        import amago

        print(amago.__version__)
        sys.exit(0)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    _add_working_folder()
    verb = VERBS.get(arguments[0])
    if verb is None:
        _fail(f"no verb is called {arguments[0]!r}; there are {', '.join(VERBS)}")
    assert verb is not None
    with _warnings_on_stderr(), _threads_without_traceback(shown=debug), stoppable():
        try:
            sys.exit(verb[0](arguments[1:]))
        except (KeyboardInterrupt, Terminated) as stop:
            print("stopped", file=sys.stderr)
            sys.exit(130 if isinstance(stop, KeyboardInterrupt) else 143)
        except Exception as error:
            if isinstance(error, BrokenPipeError) and _nobody_reads():
                sys.exit(141)  # as a program that SIGPIPE ends, such as `amago zoo | head -3`
            if debug:
                raise
            _fail(explain(error))


def _nobody_reads() -> bool:
    """Whether what stdout is piped into has ended; then nothing more is written there."""
    out = sys.stdout.fileno()
    poll = select.poll()
    poll.register(out, select.POLLOUT)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), out)
    return True


class _Stderr(logging.Handler):
    """Prints to what stderr is at that moment: a live view keeps its place by redirecting it."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


@contextlib.contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Show what amago logs, such as where a stopped run can go on."""
    handler = _Stderr()
    logger = logging.getLogger("amago")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def _threads_without_traceback(*, shown: bool) -> Iterator[None]:
    """Say in one sentence what fails in a thread, such as TensorBoard's on a full disk."""
    before = threading.excepthook

    def say(failed: threading.ExceptHookArgs) -> None:
        if shown or failed.exc_value is None:
            before(failed)
        else:
            print(f"warning: {printable(explain(failed.exc_value))}", file=sys.stderr)

    threading.excepthook = say
    try:
        yield
    finally:
        threading.excepthook = before


def _add_working_folder() -> None:
    """Let --env.id my_module:MyEnv-v0 find a module here, unless here is a run folder."""
    try:
        here = Path.cwd()
        inside = any((folder / "config.json").exists() for folder in (here, *here.parents))
    except OSError:  # removed meanwhile, or not ours to read: nothing can be found in it
        return
    if inside:
        sys.path[:] = [path for path in sys.path if path not in ("", str(here))]
    else:
        sys.path.append(str(here))


def _help() -> str:
    lines = ["usage: amago VERB [options]", "", "verbs:"]
    for name, (_, cls) in VERBS.items():
        lines += textwrap.wrap(f"{name:<9} {cls.__doc__}", WIDTH, **_under(2, 12))
    lines += ["", "`amago VERB --help` lists the options of a verb; `amago train PRESET --help`"]
    lines += ["shows every setting with the preset's value, --debug where an error came from."]
    presets = "Presets: " + ", ".join(PRESETS)
    lines += textwrap.wrap(presets, WIDTH, break_on_hyphens=False, **_under(0, 2))
    return "\n".join(lines)


def _under(first: int, others: int) -> dict[str, Any]:
    """Blanks before the first line and before the others."""
    return {"initial_indent": " " * first, "subsequent_indent": " " * others}


def _fail(message: str) -> None:
    print(f"amago: {printable(message)}", file=sys.stderr)
    sys.exit(2)
