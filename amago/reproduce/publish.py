"""From runs to results/<claim>: data, page and picture."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from amago.board.table import board_rows, write_board
from amago.report.runs import read_run
from amago.reproduce import views
from amago.reproduce.claims.claim import Claim, made_today, read_claim
from amago.reproduce.claims.export import copy_run
from amago.reproduce.claims.pages import BOARD, write_claim, write_indexes
from amago.reproduce.claims.probes import probe_path
from amago.reproduce.entry import Experiment, Leaderboard, Measurement, Scale
from amago.reproduce.plan import RESULT, Planned
from amago.sweep.jobs import next_step


def publish(
    experiment: Experiment, scale: Scale, runs: Sequence[Planned], out: Path
) -> Claim | None:
    """Copy what is complete into the claim's folder and write its page; None without any run.

    Runs of an arm that earlier settings gave make room for new ones: a mean over both would say
    nothing.
    """
    folder = out / experiment.folder(scale)
    made = [run for run in runs if next_step(run.job) == "skip"]
    if not made:
        return None
    for run in made:
        target = folder / "data" / run.arm.folder / run.job.run_dir.name
        copy_run(read_run(run.job.run_dir), target, views.needs(experiment.view))
        for probe in experiment.probes:
            scores = run.probe(probe).run_dir / RESULT
            if scores.is_file():
                kept = probe_path(target, probe.name)
                kept.parent.mkdir(exist_ok=True)
                shutil.copyfile(scores, kept)
    for arm in {run.arm for run in made}:
        _drop_earlier(experiment, scale, folder / "data" / arm.folder, made)
    return _write(folder, out)


def _drop_earlier(
    experiment: Experiment, scale: Scale, folder: Path, made: Sequence[Planned]
) -> None:
    new = {run.job.run_dir.name for run in made if run.arm.folder == folder.name}
    arm = next(arm for arm in experiment.arms if arm.folder == folder.name)
    settings, preset = experiment.settings_of(arm, scale), experiment.preset_of(arm, scale)
    for path in folder.glob("seed-*"):
        if path.name not in new and not made_today(read_run(path), settings, preset):
            shutil.rmtree(path)


def _write(folder: Path, out: Path) -> Claim:
    """The page and picture of a claim, and the indexes around it."""
    claim = read_claim(folder)
    write_claim(claim)
    write_indexes(out)
    return claim


def publish_measurement(entry: Measurement, out: Path) -> Claim:
    """The page and picture of what was measured."""
    return _write(out / entry.claim, out)


def publish_board(entry: Leaderboard, out: Path) -> Path:
    """The board of the runs that `amago board` made."""
    target = out / Path(BOARD).parent
    rows = board_rows(entry.runs)
    target.mkdir(parents=True, exist_ok=True)
    write_board(rows, target)
    write_indexes(out)
    return target
