"""Transitions of a share of a batch, part by part, as if the batch were one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from amago.agent.agent import Agent
from amago.agent.settings import AgentSettings
from amago.agent.share import Part, Share
from amago.agent.transitions import Transitions
from amago.nets.place import Place, RandomState, placed


def in_parts(
    agent: Agent,
    share: Share,
    settings: AgentSettings,
    move_statistics: Callable[[Transitions], None],
) -> Iterator[tuple[Place, Transitions]]:
    """Each part's place and transitions; learn from one before asking for the next.

    Losses need PopArt's statistics of all targets, so targets come first, in a pass without
    gradient. Every part draws the random numbers of the whole batch and keeps its own.
    """
    begin = RandomState(agent.discounts.device)
    targets = []
    for part in share.parts:
        begin.restore()
        with placed(share.place_of(part)), torch.no_grad():
            targets.append(Transitions(agent, part.of(share.batch), settings).target)
    after_targets = RandomState(agent.discounts.device)
    whole = Transitions(agent, share.batch, settings, encode=False)
    whole.target = _joined(share.parts, targets)
    move_statistics(whole)
    for part, target in zip(share.parts, targets, strict=True):
        place = share.place_of(part)
        begin.restore()
        with placed(place):
            transitions = Transitions(agent, part.of(share.batch), settings)
            transitions.target = target
            after_targets.restore()
            yield place, transitions


def _joined(parts: tuple[Part, ...], targets: list[Tensor]) -> Tensor:
    """Targets of all parts in the order of the batch that they are parts of."""
    places = torch.cat([part.place.transitions for part in parts])
    return torch.empty_like(joined := torch.cat(targets)).index_copy_(0, places, joined)
