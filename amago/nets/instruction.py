"""An instruction and how far it is followed → one vector per row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.goals import GoalSpec
from amago.nets.layers import mlp
from amago.nets.settings import InstructionSettings

ABSENT, PENDING, CURRENT, DONE = range(4)
"""What a slot of an instruction can be."""
MOST_CHOICES = 64
"""Whole numbers of more values than this are only scaled."""


@dataclass(frozen=True)
class Asked:
    """What every row was asked for, and how much of it was complete."""

    goals: Tensor  # [M, k, size], slots from num_goals on are 0
    num_goals: Int[Tensor, " M"]
    progress: Int[Tensor, " M"]


def slot_status(asked: Asked) -> Int[Tensor, "M k"]:
    """ABSENT, PENDING, CURRENT or DONE for every slot."""
    slot = torch.arange(asked.goals.shape[1], device=asked.progress.device)
    progress, count = asked.progress[:, None], asked.num_goals[:, None]
    status = torch.full_like(slot.expand(len(progress), -1), PENDING)
    status = status.masked_fill(slot == progress, CURRENT).masked_fill(slot < progress, DONE)
    return status.masked_fill(slot >= count, ABSENT)


def distinct(asked: Asked) -> tuple[Asked, Int[Tensor, " M"]]:
    """Rows without repetition of the one before, and which of them every row is.

    What is asked changes a few times in a rollout, so that most rows of a window say the same.
    """
    state = torch.stack((asked.num_goals.long(), asked.progress.long()), -1)
    changes = (state[1:] != state[:-1]).any(-1)
    changes |= (asked.goals[1:] != asked.goals[:-1]).flatten(1).any(-1)
    kept = F.pad(changes, (1, 0), value=True)
    which = kept.cumsum(0) - 1
    return Asked(asked.goals[kept], asked.num_goals[kept], asked.progress[kept]), which


class InstructionEncoder(nn.Module):
    """Every slot's goal and status, through an MLP over all slots or a GRU from word to word.

    Numbers are scaled to [-1, 1], and whole ones of few values are one-hot as well, so that
    neighbours are easily told apart; tokens are embedded. With `hide_plan` a row shows what
    is done and the current goal only ("w/o Planning"). Beside the MLP's output stands the
    current goal as it is: whether this place is the one asked for is what everything hinges
    on, and slow to learn through status flags and a narrow layer.
    """

    low: Tensor
    span: Tensor
    choices: Tensor
    """Every whole number that each place of a goal can be, [size, most]."""

    def __init__(self, spec: GoalSpec, settings: InstructionSettings) -> None:
        super().__init__()
        self.hide_plan, self.output_dim = settings.hide_plan, settings.hidden[-1]
        self.tokens: nn.Embedding | None = None
        width = spec.size
        if spec.kind == "token":
            self.tokens = nn.Embedding(len(spec.vocabulary), settings.token_dim)
            width *= settings.token_dim
        else:
            low, high = torch.tensor(spec.low), torch.tensor(spec.high)
            self.register_buffer("low", low.float(), persistent=False)
            span = torch.where(high > low, high - low, 1.0)
            self.register_buffer("span", span.float(), persistent=False)
            most = int(span.max()) + 1 if spec.whole else 0
            choices = low[:, None] + torch.arange(most if most <= MOST_CHOICES else 0)
            self.register_buffer("choices", choices.float(), persistent=False)
            width += choices.numel()
        width += DONE + 1
        self.rnn: nn.GRU | None = None
        if settings.kind == "rnn":
            # Numbers are read goal by goal, words one by one.
            self.steps = spec.size if spec.kind == "token" else 1
            width = (width - DONE - 1) // self.steps + DONE + 1
            self.rnn = nn.GRU(width, settings.hidden[0], batch_first=True)
            self.net = mlp(settings.hidden if len(settings.hidden) > 1 else settings.hidden * 2)
        else:
            self.net = mlp((spec.max_goals * width, *settings.hidden))
            self.output_dim += width - DONE - 1

    def forward(self, asked: Asked, dtype: torch.dtype) -> Float[Tensor, "M E"]:
        rows, which = distinct(asked)
        return self._encode(rows, dtype)[which]

    def _encode(self, asked: Asked, dtype: torch.dtype) -> Float[Tensor, "M E"]:
        status = slot_status(asked)
        if self.hide_plan:
            status = status.masked_fill(status == PENDING, ABSENT)
        shown = status == CURRENT if self.hide_plan else status != ABSENT
        goals = self._goals(asked.goals, dtype) * shown[..., None]
        marks = F.one_hot(status, DONE + 1).to(dtype)
        if self.rnn is None:
            slots = torch.cat((goals, marks), -1)
            current = (goals * (status == CURRENT)[..., None]).sum(1)
            return torch.cat((self.net(slots.flatten(1)), current), -1)
        items = goals.view(len(goals), goals.shape[1] * self.steps, -1)
        marks = marks.repeat_interleave(self.steps, 1)
        _, last = self.rnn(torch.cat((items, marks), -1))
        encoded: Tensor = self.net(last[0])
        return encoded

    def _goals(self, goals: Tensor, dtype: torch.dtype) -> Float[Tensor, "M k width"]:
        if self.tokens is not None:
            embedded: Tensor = self.tokens(goals.long())
            return embedded.flatten(2)
        low, span = self.low.to(dtype), self.span.to(dtype)
        scaled = 2.0 * (goals.to(dtype) - low) / span - 1.0
        one_hot = (goals[..., None] == self.choices).flatten(2).to(dtype)
        return torch.cat((scaled, one_hot), -1)
