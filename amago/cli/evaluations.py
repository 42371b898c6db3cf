"""What the verbs share: how evaluations are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def report(folder: Path, work: Callable[[], dict[str, Any]]) -> int:
    """Run to the end and show what came of it; say how to go on when interrupted."""
    try:
        result = work()
    except KeyboardInterrupt:
        print(f"\nstopped; go on with: amago resume {folder}", file=sys.stderr)
        return 130
    print_evaluation(result, result["references"].get("oracle"))
    print(f"curves: {folder / 'curves.png'}")
    return 0


def print_evaluation(result: dict[str, Any], oracle: list[float] | None) -> None:
    from rich.console import Console

    from amago.report.tables import adaptation_bars, evaluation_table

    console = Console()
    console.print(evaluation_table(result))
    if result.get("return_per_block") is not None:
        console.print(adaptation_bars(result["return_per_block"], oracle))
