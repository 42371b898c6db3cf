"""What the verbs share: how evaluations are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amago.handle import Run


def run_to_the_end(folder: Path, work: Callable[[], Run]) -> int:
    """Run, then print the final test; the exit code of a stopped run names its signal."""
    from amago.scale.learn import is_follower
    from amago.training.interrupt import Terminated

    try:
        run = work()
    except (KeyboardInterrupt, Terminated) as stop:
        # What is kept and how to go on was said where it was saved.
        if not (folder / "config.json").exists():
            print("stopped before the run was made; nothing is left of it", file=sys.stderr)
        return 143 if isinstance(stop, Terminated) else 130
    if is_follower():
        return 0
    print_evaluation(run.result)
    print(f"curves: {folder / 'curves.png'}")
    if (folder / "report.html").is_file():
        print(f"report: {folder / 'report.html'}")
    return 0


def print_evaluation(result: dict[str, Any]) -> None:
    from rich.console import Console

    from amago.report.tables import adaptation_bars, evaluation_table

    console = Console()
    console.print(evaluation_table(result))
    if result.get("return_per_block") is not None:
        oracle = result["references"].get("oracle")
        console.print(adaptation_bars(result["return_per_block"], oracle))
