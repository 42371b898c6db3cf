"""A session in the terminal: the world in half blocks, and what the agent thinks beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from PIL import Image
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from amago.play.session import Session
from amago.types import Array

_WIDTH = 40
"""Columns of the world; a character is one column wide and two rows high."""
_BAR = 18


def watch(session: Session, steps_per_second: float, console: Console) -> None:
    """Play a session to its end."""
    seconds = 1.0 / steps_per_second
    with Live(_panel(session), console=console, auto_refresh=False) as live:
        for _ in _steps(session):
            started = time.monotonic()
            live.update(_panel(session), refresh=True)
            time.sleep(max(0.0, seconds - (time.monotonic() - started)))
    console.print(summary(session))


def _steps(session: Session) -> Iterator[None]:
    while not session.ended:
        session.step()
        yield


def _panel(session: Session) -> RenderableType:
    """The world beside step, return, policy and values."""
    picture = session.frames.picture(session.rows[-1].frame)
    table = Table.grid(padding=(0, 3))
    table.add_row(
        Text("") if picture is None else _blocks(picture), Group(*_lines(session), _policy(session))
    )
    return table


def _blocks(picture: Array, width: int = _WIDTH) -> Text:
    """An RGB frame in characters: the upper half is the letter, the lower one its background."""
    height = max(2, round(width * picture.shape[0] / picture.shape[1]) // 2 * 2)
    # Means of areas: thin lines become faint, but none disappears.
    small = np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BOX))
    text = Text()
    for upper, lower in zip(small[::2], small[1::2], strict=True):
        for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
            text.append("▀", style=f"{_colour(above)} on {_colour(below)}")
        text.append("\n")
    return text


def summary(session: Session) -> str:
    """What the rollout earned beside random play and the oracle in the same world."""
    parts = [f"return {_total(session.rewards)}", f"random play {session.rivals.random[-1]:.1f}"]
    if session.rivals.best is not None:
        parts.append(f"oracle {_total(session.rivals.best)}")
    return f"world {session.seed}: " + ", ".join(parts)


def _total(rewards: Sequence[float]) -> str:
    """A return, to two digits behind the point."""
    return f"{round(sum(rewards), 2):g}"


def _lines(session: Session) -> list[Text]:
    world = session.world
    tenths = np.zeros(10)
    for step, reward in enumerate(session.rewards):
        tenths[step * 10 // world.horizon] += reward
    done = session.time * 10 // world.horizon
    lines = [
        Text(f"{world.spec.name}  world {session.seed}", style="bold"),
        Text(f"step {session.time} of {world.horizon}   return {_total(session.rewards)}"),
        Text("return per tenth  " + " ".join(f"{x:.2g}" for x in tenths[: done + 1])),
    ]
    asked = world.asked(session.row)
    lines += [Text(f"[{'x' if complete else ' '}] {goal}") for goal, complete in asked]
    return [*lines, Text("")]


def _policy(session: Session) -> Table:
    table = Table.grid(padding=(0, 1))
    thought = session.thought
    if thought is None:
        return table
    if thought.probabilities is not None:
        for name, share in zip(session.action_names, thought.probabilities, strict=True):
            table.add_row(name, Text("█" * round(share * _BAR), style="blue"), f"{share:.2f}")
    elif thought.mean is not None and thought.deviation is not None:
        pairs = zip(session.action_names, thought.mean, thought.deviation, strict=True)
        for name, mean, deviation in pairs:
            table.add_row(name, f"{mean:+.2f} ± {deviation:.2f}", "")
    for discount, value in zip(session.mind.discounts, thought.values or [], strict=False):
        table.add_row(f"Q γ={discount:g}", "", f"{value:.2f}")
    return table


def _colour(rgb: list[int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)
