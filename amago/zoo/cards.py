"""Model cards: what an agent was trained with, what it scores, what it cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from amago.envs.catalogue import domain_of
from amago.saved.packed import Card, read_card
from amago.saved.source import ZOO_PREFIX, zoo_names, zoo_path

_BARS = "▁▂▃▄▅▆▇█"


def card_of(name: str) -> Card:
    """The card of an agent of the zoo (with or without "zoo:"), or of a packed file."""
    path = Path(name)
    return read_card(path if path.is_file() else zoo_path(name.removeprefix(ZOO_PREFIX)))


def listing() -> Table:
    """One line per agent: its score beside random play and the oracle, and what to install."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("agent", no_wrap=True)
    table.add_column("environment", overflow="fold")
    for title in ("return", "random", "oracle"):
        table.add_column(title, justify="right")
    table.add_column("extra")
    for name in zoo_names():
        card = card_of(name)
        table.add_row(
            name,
            card.config.env.id.removeprefix("amago/"),
            _score(card.result),
            _score(reference(card, "random")),
            _score(reference(card, "oracle")),
            needed_extra(card),
        )
    return table


def needed_extra(card: Card) -> str:
    """The optional packages that the agent's environment needs; none for most."""
    return domain_of(card.config.env.id).extra


def reference(card: Card, name: str) -> dict[str, Any] | None:
    """Scores of random play or of the oracle on the worlds of the final test."""
    scores: dict[str, Any] = card.result.get("reference_scores", {})
    if name in scores:
        return dict(scores[name])
    blocks = card.result.get("references", {}).get(name)
    return None if blocks is None else {"return_mean": sum(blocks)}


def card_text(name: str, card: Card) -> str:
    """The whole card as plain text."""
    result, env = card.result, card.config.env
    returns = [point[1] for point in card.curve]
    lines = [
        f"{name}",
        f"  environment   {env.id} {env.kwargs or ''}",
        f"  command       {card.command}",
        f"  commit        {card.header.get('git_commit')} of {card.header.get('created', '')[:10]}",
        f"  trained for   {result.get('env_steps', 0):,} steps, "
        f"{result.get('seconds', 0) / 60:.1f} minutes",
        f"  return        {_score(result)} over {result.get('episodes')} unseen worlds",
        f"  success rate  {_rate(result)}",
        f"  random play   {_score(reference(card, 'random'))}",
        f"  oracle        {_score(reference(card, 'oracle'))}",
    ]
    lines += [f"  {label:<13} {value:.2f}" for label, value in card.controls.items()]
    seeds = ", ".join(f"seed {seed}: {value:.2f}" for seed, value in card.seeds.items())
    lines += [f"  seeds         {seeds}"]
    if returns:
        steps = card.curve[-1][0]
        lines += [f"  curve         {sparkline(returns)}  (return over {steps:,.0f} steps)"]
    if needed_extra(card):
        lines.append(f"  needs         pip install 'amago[{needed_extra(card)}]'")
    return "\n".join([*lines, *(f"  limits        {text}" for text in card.cannot)])


def sparkline(values: list[float]) -> str:
    """Numbers as bars of eight heights."""
    low, high = min(values), max(values)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in values)


def _score(scores: dict[str, Any] | None) -> str:
    return "—" if scores is None else f"{scores['return_mean']:.2f}"


def _rate(scores: dict[str, Any]) -> str:
    rate = scores.get("success_rate")
    return "—" if rate is None else f"{rate:.0%}"
