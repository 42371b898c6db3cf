"""Kill runs at random, damage their files at random, and see whether anything is lost.

`make torture KILLS=150` runs it and writes the table in docs/reliability.md. A run is killed again
and again, at a random time or at a random file operation, until it is complete; then it must equal,
bit for bit, the run that nothing happened to. A damaged run must go on or say what is wrong.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from test_run_helpers import die, differing, no_plots, tiny

from amago import api
from amago.cli import main as amago_main
from amago.config import Config
from amago.replay.reader import TrajectoryReader
from amago.training.start import create

_LONG: dict[str, Any] = {
    "run.epochs": 8, "run.eval_interval": 3, "run.save_interval": 2, "replay.capacity": 9,
    "transformer.dropout": 0.1,
}  # fmt: skip
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "Transformer, discrete": ("dark-key-to-door", {
        "env.kwargs": {"grid": 3, "trial_limit": 3, "horizon": 6}}),
    "GRU, continuous": ("wind", {"env.kwargs": {"horizon": 6}, "memory": "gru"}),
    "no memory": ("wind", {"env.kwargs": {"horizon": 6}, "memory": "feedforward"}),
    "relabeling": ("maze-runner", {"env.kwargs": {"size": 7, "horizon": 12}}),
    "pixels": ("pixel-recall", {}),
    "workers": ("wind", {"env.kwargs": {"horizon": 6}, "env.num_workers": 2}),
    "imported data": ("wind", {"env.kwargs": {"horizon": 6}, "rollout.offline_epochs": 3}),
}  # fmt: skip
FILE_OPERATIONS = ("fsync", "rename", "replace", "unlink", "open", "rmdir", "mkdir")
_DAMAGED_FILES = (
    "checkpoints/*/model.safetensors", "checkpoints/*/optimizer.safetensors",
    "checkpoints/*/state.json", "checkpoints/*/checksums.json", "checkpoints/latest.json",
    "checkpoints/best.json", "config.json", "metrics.jsonl", "timing.jsonl", "replay/data.mdb",
)  # fmt: skip


@dataclass
class Tally:
    """What was done to the runs of one kind, and what came of it."""

    kills: int = 0
    during_resume: int = 0
    at_files: int = 0
    runs: int = 0
    exact: int = 0
    damaged: int = 0
    went_on: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def campaign(
    kinds: list[str], kills: int, damages: int, seed: int, folder: Path, say: Callable[[str], None]
) -> dict[str, Tally]:
    """So many kills and damages, shared out among the kinds of runs."""
    tallies = {kind: Tally() for kind in kinds}
    for number, kind in enumerate(kinds):
        rng, tally = random.Random(f"{seed} {kind}"), tallies[kind]
        whole, seconds = _undisturbed(kind, folder / f"{number}-whole")
        share = kills // len(kinds) + (number < kills % len(kinds))
        while tally.kills < share:
            _kill_until_complete(kind, folder, whole, seconds, rng, tally, share)
        for _ in range(damages // len(kinds) + (number < damages % len(kinds))):
            _damage(kind, folder, whole, rng, tally)
        say(f"{kind}: {tally}")
    return tallies


def config_of(kind: str) -> Config:
    preset, settings = KINDS[kind]
    return tiny(preset, {**_LONG, **settings})


def _undisturbed(kind: str, folder: Path) -> tuple[Path, float]:
    start = time.monotonic()
    code = forked(_begin, kind, folder)
    if code:
        raise RuntimeError(f"the undisturbed run of {kind!r} ended with {code}")
    return folder, time.monotonic() - start


def _begin(kind: str, folder: Path) -> None:
    no_plots()
    if kind != "imported data":
        api.train(config_of(kind), 7, folder, preset=KINDS[kind][0])
        return
    from amago.datasets.importing import import_into

    source = folder.parent / "source"
    if not source.exists():
        settings = {"run.epochs": 3, "env.kwargs": {"horizon": 6}}
        api.train(tiny("wind", settings), 1, source, preset="wind")
    if not (folder / "config.json").exists():
        create(folder, config_of(kind), 7, preset="wind").close()
        import_into(folder, "run", [str(source)])
    api.resume(folder)


def _kill_until_complete(
    kind: str, folder: Path, whole: Path, seconds: float, rng: random.Random, tally: Tally,
    most: int,
) -> None:  # fmt: skip
    """One run that is killed again and again, and then has to be the undisturbed one."""
    run = folder / "killed"
    shutil.rmtree(run, ignore_errors=True)
    for attempt in range(50):
        resumes, by_file = (run / "config.json").exists(), False
        if tally.kills >= most or attempt == 49:
            code = forked(_go_on, kind, run)
        elif rng.random() < 0.5:
            by_file = True
            code = forked(_die_at_file, kind, run, rng.choice(FILE_OPERATIONS), rng.randrange(60))
        else:
            code = forked(_go_on, kind, run, after=rng.uniform(0.0, 0.7 * seconds))
        if code == -signal.SIGKILL:
            tally.kills += 1
            tally.during_resume += resumes
            tally.at_files += by_file
            continue
        break
    tally.runs += 1
    wrong = [f"exit code {code}"] if code else differing(run, whole)
    tally.exact += not wrong
    if wrong:
        kept = folder / f"failure-{len(tally.failures)}-{kind.replace(' ', '-')}"
        shutil.copytree(run, kept, dirs_exist_ok=True)
        tally.failures.append(f"killed run differs in {wrong} ({kept})")


def _go_on(kind: str, run: Path) -> None:
    no_plots()
    if (run / "config.json").exists() and (kind != "imported data" or _has_data(run)):
        api.resume(run)
        return
    shutil.rmtree(run, ignore_errors=True)  # an import is all or none: begin it again
    _begin(kind, run)


def _has_data(run: Path) -> bool:
    """Whether an import came to its end before the run was killed."""
    try:
        with TrajectoryReader(run / "replay") as store:
            return bool(store.num_protected)
    except ValueError:  # killed before the store was made
        return False


def _die_at_file(kind: str, run: Path, operation: str, left: int) -> None:
    original = getattr(os, operation)

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            die()
        return original(*arguments, **named)

    setattr(os, operation, counted)
    _go_on(kind, run)


def _damage(kind: str, folder: Path, whole: Path, rng: random.Random, tally: Tally) -> None:
    """Change, cut or remove one file of a run: it goes on, or says in one sentence what it is."""
    run = folder / "damaged"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(whole, run)
    (run / "result.json").unlink()
    found = sorted(path for name in _DAMAGED_FILES for path in run.glob(name))
    path, how = rng.choice(found), rng.choice(("flipped", "cut short", "removed", "emptied"))
    data = bytearray(path.read_bytes())
    if how == "removed":
        path.unlink()
    elif how == "flipped":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    else:
        path.write_bytes(data[: rng.randrange(len(data)) if how == "cut short" else 0])
    code = forked(_command, run)
    tally.damaged += 1
    tally.went_on += code == 0
    tally.refused += code == 2
    if code not in (0, 2):
        tally.failures.append(f"{path.relative_to(run)} {how}: exit code {code}")


def _command(run: Path) -> None:
    no_plots()
    try:
        amago_main(["resume", str(run)])
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)


def forked(work: Callable[..., Any], *arguments: Any, after: float | None = None) -> int:
    """The exit code of work in a fork of this process, which is killed after a time if asked."""
    child = os.fork()
    if child == 0:
        logging.getLogger().handlers.clear()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            work(*arguments)
            os._exit(0)
        except BaseException:
            os._exit(1)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def table(tallies: dict[str, Tally]) -> str:
    """The results as the table of docs/reliability.md."""
    rows = ["| runs | kills | of these during resume | at a file operation | complete runs "
            "| exact | damaged | went on | refused | failures |",
            "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    rows += [
        f"| {kind} | {t.kills} | {t.during_resume} | {t.at_files} | {t.runs} | {t.exact} "
        f"| {t.damaged} | {t.went_on} | {t.refused} | {len(t.failures)} |"
        for kind, t in tallies.items()
    ]
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=150)
    parser.add_argument("--damages", type=int, default=70)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--write", type=Path, help="the page whose table is written anew")
    options = parser.parse_args()
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="amago-torture-"))
    tallies = campaign(
        options.kinds, options.kills, options.damages, options.seed, folder,
        lambda text: print(text, flush=True),
    )  # fmt: skip
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    minutes = (time.monotonic() - start) / 60
    summary = (
        f"`KILLS={options.kills}`, seed {options.seed}, {time.strftime('%Y-%m-%d')}, "
        f"{minutes:.0f} minutes, {len(failures)} failures."
    )
    text = f"{summary}\n\n{table(tallies)}"
    print(text)
    for failure in failures:
        print("FAILURE:", failure)
    if not failures:
        shutil.rmtree(folder)
    if options.write is not None:
        page = options.write.read_text()
        before, _, rest = page.partition("<!-- torture -->\n")
        _, _, after = rest.partition("<!-- end of torture -->")
        marks = ("<!-- torture -->\n", "\n<!-- end of torture -->")
        options.write.write_text(before + marks[0] + text + marks[1] + after)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
