"""`amago board`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.baselines.catalogue import METHODS
from amago.cli.parsing import gathered, parse
from amago.cli.sweep import check_settings


@dataclass(frozen=True)
class BoardOptions:
    """Measure how soon each task's bar is reached, in a resumable queue."""

    tasks: tyro.conf.Positional[tuple[str, ...]] = ()
    """The tasks; without a name, all of them. `--list` shows them with their bars."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of every task."""
    method: str = "amago"
    """Name of these settings in the table; recurrent-ppo trains that baseline."""
    set: tuple[str, ...] = ()
    """Settings changed in all runs, as key=value."""
    ablate: tuple[str, ...] = ()
    """Ablations of the paper in all runs, such as no-memory."""
    jobs: int = 2
    """Runs at a time, each on one thread."""
    root: Path = Path("runs/board")
    """Folder of the board; methods that share one stand beside each other."""
    list: bool = False
    """Show the tasks and their bars, and run nothing."""


def board(arguments: Sequence[str]) -> int:
    options = parse(BoardOptions, gathered("--set", arguments), "amago board")
    from rich.console import Console

    from amago.board.table import board_rows, group_name, terminal_table, write_board
    from amago.board.tasks import choose, task_table
    from amago.sweep.jobs import Job, Step, flags, parse_overrides, with_ablations
    from amago.sweep.sweep import record_command, run_jobs

    tasks = choose(options.tasks)
    if options.list:
        Console().print(task_table(tasks))
        return 0
    if not options.seeds:
        raise ValueError("expected at least one of --seeds; leave the flag out for 0 1 2")
    overrides = parse_overrides(with_ablations(options.set, options.ablate))
    if options.method in METHODS:
        overrides = {"method": _checked(options.method), **overrides}
    for task in tasks.values():  # a bad setting should fail here, not once per run
        check_settings(task.preset, {**task.changes, **overrides})
    jobs = [
        Job(
            name,
            seed,
            overrides,
            options.root / group_name(name, options.method) / f"seed-{seed}",
        )
        for seed in dict.fromkeys(options.seeds)
        for name in tasks
    ]

    def command(job: Job, _: Step) -> list[str]:
        run = [sys.executable, "-m", "amago.cli.board_run", job.preset, str(job.seed)]
        return [*run, str(job.run_dir), *flags(job.overrides)]

    record_command(options.root, ["amago", "board", *arguments])
    outcome = run_jobs(jobs, options.jobs, options.root, command=command)
    if outcome.done or outcome.skipped:
        rows = board_rows(options.root)
        write_board(rows, options.root)
        Console().print(terminal_table(rows))
    return int(outcome.exit_code)


def _checked(method: str) -> str:
    """A baseline that plays what the board's tasks are."""
    if METHODS[method].env_id:
        raise ValueError(f"{method} plays worlds of its own, not those of the board's bars")
    return method
