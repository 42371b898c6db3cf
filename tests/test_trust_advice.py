"""Advice in messages is advice that works: each command that a message names is run here.

The list is made from the strings in the source. A message that names a new command fails
`test_every_command_that_a_message_names_is_run_here` until that command has a line in ADVICE.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from test_run_helpers import command, flags, tiny

import amago
from amago import api
from amago.cli.command import VERBS
from amago.config import Config
from amago.sweep.sweep import Outcome

_SOURCE = Path(amago.__file__).parent
_NAMED = re.compile(rf"amago (?:{'|'.join(VERBS)})\b[^`;,()\n]*")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)*(?![\w.-]*=)")
KEPT = {
    "run.epochs": 3,
    "run.save_interval": 1,
    "run.keep_interval": 1,
    "env.kwargs": {"horizon": 5},
}
Lines = Callable[[Path, Path], list[list[str | Path]]]
"""(a finished run, an empty folder) → the command lines of the advice, which all succeed."""


def _npz(run: Path, folder: Path) -> list[list[str | Path]]:
    source = folder / "data.npz"
    obs = np.zeros((3, 2), np.float32)
    np.savez(
        source, observations=obs, actions=np.zeros((2, 2), np.float32),
        rewards=np.zeros(2, np.float32), terminations=np.array([False, True]),
    )  # fmt: skip
    return [["import", "npz", source, "--run", run]]


def _train(run: Path, folder: Path) -> list[list[str | Path]]:
    changed = flags(tiny("wind", KEPT), amago.preset("wind"))
    return [["train", "wind", "--run-dir", folder / "new", *changed]]


def _relabel(_: Path, folder: Path) -> list[list[str | Path]]:
    run = folder / "goals"
    api.train(tiny("package-delivery"), 0, run, preset="package-delivery")
    return [["relabel", run], ["relabel", run, "--choices"]]


def _without_replay(run: Path, _: Path) -> list[list[str | Path]]:
    shutil.rmtree(run / "replay")
    return [["resume", run, "--from", "2"]]


def _without_checkpoints(run: Path, _: Path) -> list[list[str | Path]]:
    shutil.rmtree(run / "checkpoints")
    return [["resume", run, "--from", "0"]]


def _unfinished(run: Path, _: Path) -> list[list[str | Path]]:
    (run / "result.json").unlink()
    return [["resume", run]]


def _an_example() -> str:
    return min(path.stem for path in (_SOURCE.parent / "examples").glob("*.py"))


def _baseline(run: Path, folder: Path) -> list[list[str | Path]]:
    changed = flags(tiny("t-maze", {"run.epochs": 1}), amago.preset("t-maze"))
    return [["baseline", "recurrent-ppo", "t-maze", "--run-dir", folder / "new", *changed]]


def _ablated(run: Path, folder: Path) -> list[list[str | Path]]:
    return [[*_train(run, folder)[0], "--ablate", "no-memory"]]


ADVICE: dict[str, Lines] = {
    "amago baseline --list": lambda r, f: [["baseline", "--list"]],
    "amago baseline recurrent-ppo t-maze": _baseline,
    "amago baseline {} PRESET": _baseline,
    "amago train PRESET --ablate {}": _ablated,
    "amago board": lambda r, f: [["board", "--list"]],
    "amago eval RUN --attention attention.png": lambda r, f: [
        ["eval", r, "--episodes", "1", "--attention", f / "attention.png"]
    ],
    "amago eval RUN --video film.mp4": lambda r, f: [
        ["eval", r, "--episodes", "1", "--video", f / "film.mp4"]
    ],
    "amago examples": lambda r, f: [["examples"]],
    "amago examples NAME": lambda r, f: [["examples", _an_example()]],
    "amago check-env": lambda r, f: [["check-env", "CartPole-v1", "--steps", "20"]],
    "amago check-env {}{}": lambda r, f: [["check-env", "CartPole-v1", "--steps", "20"]],
    "amago import": _npz,
    "amago import npz FILE --run {}": _npz,
    "amago pack RUN": lambda r, f: [["pack", r, "--out", f / "agent.safetensors"]],
    "amago presets": lambda r, f: [["presets"]],
    "amago presets --ablations": lambda r, f: [["presets", "--ablations"]],
    "amago presets DOMAIN/paper": lambda r, f: [["presets", "wind/paper"]],
    "amago presets NAME": lambda r, f: [["presets", "wind"]],
    "amago relabel RUN": _relabel,
    "amago relabel RUN --choices": _relabel,
    "amago reproduce --list": lambda r, f: [["reproduce", "--list", "--root", f, "--out", f]],
    "amago reproduce NAME --list": lambda r, f: [["reproduce", "wind", "--list", "--out", f]],
    "amago reproduce {}{}": lambda r, f: [["reproduce", "exploration-schedule", "--out", f]],
    "amago resume {}": _unfinished,
    "amago resume {}{}{}": lambda r, f: [
        [*_unfinished(r, f)[0], "--trust"],
        *(["resume", r, "--epochs", "+1", *trust] for trust in ((), ("--trust",))),
    ],
    "amago resume RUN --set run.control=True": lambda r, f: [
        ["resume", r, "--set", "run.control=True"]
    ],
    "amago resume {} --from 0": _without_checkpoints,
    "amago resume {} --from EPOCH": _without_replay,
    "amago sweep": lambda r, f: [["sweep", "t-maze", "--root", f]],
    "amago sweep t-maze --seeds 0 1 2": lambda r, f: [
        ["sweep", "t-maze", "--seeds", "0", "1", "2", "--root", f]
    ],
    "amago train": _train,
    "amago train PRESET --help": lambda r, f: [["train", "wind", "--help"]],
    "amago train gym --env.id {}{}": _train,
    "amago watch {}": lambda r, f: [
        ["pack", r, "--out", f / "agent.safetensors"], ["watch", f / "agent.safetensors"],
    ],
    "amago watch NAME": lambda r, f: [["watch", "dark-key-to-door", "--speed", "100000"]],
    "amago zoo": lambda r, f: [["zoo"]],
    "amago zoo NAME": lambda r, f: [["zoo", "dark-key-to-door"]],
}  # fmt: skip
NO_ADVICE = {
    "amago import minari",  # needs a package: pip is what the message advises
    "amago play needs {}: pip install 'amago[play]'",
    "amago play: http://{}:{}/",
    "amago tune",  # needs a package, too
    "amago train {}",  # what a benchmark times
    "amago train {} ended before its first update",
    "amago train {} to its first update",
}
"""Messages that speak of a command and do not tell anybody to run it."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    drawn, api.plot_run = api.plot_run, lambda *_, **__: None  # type: ignore[assignment]
    api.train(tiny("wind", KEPT), 3, folder, preset="wind")
    api.plot_run = drawn
    return folder


def texts() -> Iterator[tuple[Path, str]]:
    """Every string of the source but docstrings; what an f-string fills in is {}."""
    for path in sorted(_SOURCE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        told = {
            id(part)
            for node in nodes
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr)
            for part in ast.walk(node.value)
        }
        inner = {id(v) for node in nodes if isinstance(node, ast.JoinedStr) for v in node.values}
        for node in nodes:
            if id(node) in told | inner:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "{}" for v in node.values]
                yield path, "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.value


def named_commands() -> set[str]:
    found = set()
    for path, text in texts():
        for name in _NAMED.findall(text):
            program = path.parent.name == "cli" and text.strip() == name.strip()
            if not program:  # parse(…, "amago verify") names the program of a help page
                found.add(name.strip())
    return found


def test_every_command_that_a_message_names_is_run_here() -> None:
    assert named_commands() - NO_ADVICE == set(ADVICE)


@pytest.mark.parametrize("advice", ADVICE)
def test_the_advice_works(
    advice: str, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    monkeypatch.setattr("time.sleep", lambda _: None)
    planned: list[Any] = []

    def run_jobs(jobs: Any, *_: Any, **__: Any) -> Outcome:
        planned.extend(jobs)
        for job in jobs:
            shutil.copytree(finished, job.run_dir)
        return Outcome([], [], [])

    monkeypatch.setattr("amago.sweep.sweep.run_jobs", run_jobs)
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    folder = tmp_path / "folder"
    folder.mkdir()
    for line in ADVICE[advice](run, folder):
        code, _, err = command(capsys, *line)
        assert code == 0, (line, err)
        assert bool(planned) == (line[0] == "sweep")


def known_flags() -> set[str]:
    """Every option of every verb."""
    found = {"--help", "--debug", "--version", "--from"}  # from is a word of Python
    for _, options in VERBS.values():
        if dataclasses.is_dataclass(options):
            found |= set(_flags(options))
    return found | set(_flags(Config))


def _flags(options: Any, prefix: str = "--") -> Iterator[str]:
    hints = get_type_hints(options)
    for each in dataclasses.fields(options):
        name = prefix + each.name.replace("_", "-")
        yield name
        for kind in (hints[each.name], *get_args(hints[each.name])):
            if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                yield from _flags(kind, name + ".")


def test_every_option_that_a_message_names_exists() -> None:
    known, unknown = known_flags(), set()
    for path, text in texts():
        if path.parent.name in ("play", "report", "bench") or text.startswith("--"):
            continue  # pages, styles and arguments of other programs
        for flag in _FLAG.findall(text):
            kwargs = flag.startswith(("--env.kwargs.", "--kwargs."))
            if flag not in known and not kwargs:
                unknown.add(f"{path.relative_to(_SOURCE)}: {flag}")
    assert unknown == set()
