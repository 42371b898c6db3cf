"""What the verbs share: how evaluations are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amago.envs.settings import EnvSettings
    from amago.handle import Run


def run_to_the_end(folder: Path, work: Callable[[], Run]) -> int:
    """Run, then print the final test; the exit code of a stopped run names its signal."""
    from amago.scale.learn import is_follower
    from amago.stopping import Terminated

    try:
        run = work()
    except (KeyboardInterrupt, Terminated) as stop:
        return stopped(folder, stop)
    if is_follower():
        return 0
    print_evaluation(run.result, run.config.env)
    _print_next(folder, run.result)
    return 0


def stopped(folder: Path, stop: BaseException) -> int:
    """The exit code of a run that a signal ended."""
    from amago.stopping import Terminated

    # What is kept and how to go on was said where it was saved.
    if not (folder / "config.json").exists():
        print("stopped before the run was made; nothing is left of it", file=sys.stderr)
    return 143 if isinstance(stop, Terminated) else 130


def print_evaluation(result: dict[str, Any], env: EnvSettings) -> None:
    """What to know first, then the agent beside others, then how it adapts."""
    from rich.console import Console
    from rich.markup import escape

    from amago.report.evaluations import evaluation_table, headline, shows_tenths, verdict
    from amago.report.tables import adaptation_bars

    console = Console()
    if (warning := verdict(result)) is not None:
        console.print(f"[bold red]{escape(warning)}[/]", highlight=False)
    if (quoted := headline(result)) is not None:
        console.print(f"[bold]{escape(quoted)}[/]", highlight=False)
    console.print(evaluation_table(result), highlight=False)
    if shows_tenths(result, env.trials):
        references = result["references"]
        console.print(adaptation_bars(result["return_per_block"], references.get("oracle")))


def _print_next(folder: Path, result: dict[str, Any]) -> None:
    """Where the curves are, and what to do with a trained agent."""
    from amago.saved.header import read_config
    from amago.saved.trust import trust_flag

    more, trust = max(1, int(result.get("epochs") or 2) // 2), trust_flag(read_config(folder))
    print(f"curves: {folder / 'curves.png'}")
    if (folder / "report.html").is_file():
        print(f"report: {folder / 'report.html'}")
    print("next:")
    for what, command in (
        ("watch it", f"amago watch {folder}{trust}"),
        ("film it", f"amago eval {folder} --video film.mp4{trust}"),
        ("what went wrong", f"amago doctor {folder}"),
        ("train on", f"amago resume {folder} --epochs +{more}{trust}"),
    ):
        print(f"  {what:<16}{command}")
