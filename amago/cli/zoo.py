"""`amago zoo`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from amago.cli.parsing import parse


@dataclass(frozen=True)
class ZooOptions:
    """List the trained agents that come with amago, or show one's model card."""

    agent: tyro.conf.Positional[str | None] = None
    """Name of an agent, or the file of a packed one."""


def zoo(arguments: Sequence[str]) -> int:
    options = parse(ZooOptions, arguments, "amago zoo")
    from rich.console import Console

    from amago.zoo.cards import card_of, card_text, listing

    console = Console()
    if options.agent is None:
        console.print(listing())
        console.print("`amago zoo NAME` shows a model card, `amago watch NAME` plays the agent.")
    else:
        console.print(
            card_text(options.agent, card_of(options.agent)), highlight=False, markup=False
        )
    return 0
