"""`amago watch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from amago.cli.parsing import parse


@dataclass(frozen=True)
class WatchOptions:
    """Play a trained agent in the terminal, without training anything."""

    agent: tyro.conf.Positional[str] = "dark-key-to-door"
    """An agent of the zoo, a packed agent's file, or a run folder."""
    seed: int = 0
    """Which world to play in."""
    speed: float = 12.0
    """Steps per second."""
    trust: bool = False
    """Import the module of the run's environment: the run is yours."""
    instruction: str = ""
    """What to ask for, in domains with instructions; unset: what the world draws."""


def watch(arguments: Sequence[str]) -> int:
    options = parse(WatchOptions, arguments, "amago watch")
    if options.speed <= 0 or options.seed < 0:
        raise ValueError(
            f"--speed must be more than 0 and --seed at least 0, got {options.speed} and "
            f"{options.seed}"
        )
    from rich.console import Console

    from amago.play import terminal
    from amago.play.session import Session
    from amago.play.shelf import Shelf
    from amago.process import prepare_process

    prepare_process(1)
    shelf = Shelf([options.agent], trust=options.trust)
    session = Session(shelf.load(shelf.default), options.seed, instruction=options.instruction)
    try:
        terminal.watch(session, options.speed, Console())
    except KeyboardInterrupt:
        return 130
    finally:
        session.close()
    return 0
