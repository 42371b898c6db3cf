"""The command line."""

from __future__ import annotations

from collections.abc import Sequence

from amago.stopping import ending_at_once


def main(arguments: Sequence[str] | None = None) -> None:
    """`amago VERB …`; a signal while all of it is still being imported ends it in order."""
    with ending_at_once():
        from amago.cli.command import run
    run(arguments)
