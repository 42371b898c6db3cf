"""An instruction and how far it is followed → one vector per row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from amago.goals import GoalSpec
from amago.nets.layers import mlp
from amago.nets.sequences import Sequences
from amago.nets.settings import InstructionSettings
from amago.types import Batch

_ABSENT, _PENDING, _CURRENT, _DONE = range(4)
"""What a slot of an instruction can be."""
_MOST_CHOICES = 64
"""Whole numbers of more values than this are only scaled."""
_TOKEN_DIM = 16
"""Numbers per token, where goals are words."""


def _slot_status(
    num_slots: int, num_goals: Int[Tensor, " R"], progress: Int[Tensor, " R"]
) -> Int[Tensor, "R k"]:
    """ABSENT, PENDING, CURRENT or DONE for every slot of R instructions."""
    slot = torch.arange(num_slots, device=progress.device)
    done, count = progress[:, None], num_goals[:, None]
    status = torch.full_like(slot.expand(done.shape[0], -1), _PENDING)
    status = status.masked_fill(slot == done, _CURRENT).masked_fill(slot < done, _DONE)
    return status.masked_fill(slot >= count, _ABSENT)


class InstructionEncoder(nn.Module):
    """Every slot's goal and status, through an MLP over all slots or a GRU from word to word,
    which stops at the last word.

    Numbers are scaled to [-1, 1], and whole ones of few values are one-hot as well, so that
    neighbours are easily separated; tokens are embedded. With `hide_plan` a row shows what
    is done and the current goal only ("w/o Planning"). The current goal is also part of the
    output as it is. The agent must tell whether this place is the one it was asked for, and
    that is slow to learn through status flags and a narrow layer.
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
            self.tokens = nn.Embedding(len(spec.vocabulary), _TOKEN_DIM)
            width *= _TOKEN_DIM
        else:
            low, high = torch.tensor(spec.low), torch.tensor(spec.high)
            self.register_buffer("low", low.float(), persistent=False)
            span = torch.where(high > low, high - low, 1.0)
            self.register_buffer("span", span.float(), persistent=False)
            # From the spec's numbers, since tensors have no values on the device "meta".
            widest = max(1.0, *(b - a for a, b in zip(spec.low, spec.high, strict=True)))
            most = int(widest) + 1 if spec.whole else 0
            choices = low[:, None] + torch.arange(most if most <= _MOST_CHOICES else 0)
            self.register_buffer("choices", choices.float(), persistent=False)
            width += choices.numel()
        self.output_dim += width
        self.rnn: nn.GRU | None = None
        if settings.kind == "rnn":
            # Numbers are read goal by goal, words one by one.
            words = spec.size if spec.kind == "token" else 1
            self.rnn = nn.GRU(width // words + _DONE + 1, settings.hidden[0], batch_first=True)
            self.net = mlp(settings.hidden if len(settings.hidden) > 1 else settings.hidden * 2)
        else:
            self.net = mlp((spec.max_goals * (width + _DONE + 1), *settings.hidden))

    def forward(self, batch: Batch, dtype: torch.dtype) -> Float[Tensor, "M E"]:
        """One vector per row of a batch.

        A sequence has one instruction, and its rows differ in progress alone, 0..k. Where rows
        outnumber these combinations, each combination is encoded once and rows look theirs up.
        """
        goals, num_goals, progress = batch.instruction, batch.num_goals, batch.progress
        assert goals is not None and num_goals is not None and progress is not None
        stages = goals.shape[1] + 1
        owners = None
        if goals.shape[0] < progress.shape[0]:
            owners = Sequences(batch.lengths, progress.device).owners()
        if owners is None or len(batch) <= len(goals) * stages:
            own = slice(None) if owners is None else owners
            return self.encode(goals[own], num_goals[own], progress, dtype)
        every = torch.arange(stages, device=progress.device).repeat(len(goals))
        table = self.encode(
            goals.repeat_interleave(stages, 0), num_goals.repeat_interleave(stages), every, dtype
        )
        return F.embedding(owners * stages + progress, table)

    def encode(
        self,
        goals: Shaped[Tensor, "R k size"],
        num_goals: Int[Tensor, " R"],
        progress: Int[Tensor, " R"],
        dtype: torch.dtype,
    ) -> Float[Tensor, "R E"]:
        """R instructions, each with its progress."""
        status = _slot_status(goals.shape[1], num_goals, progress)
        if self.hide_plan:
            status = status.masked_fill(status == _PENDING, _ABSENT)
        shown = status == _CURRENT if self.hide_plan else status != _ABSENT
        features = self._goals(goals, dtype) * shown[..., None]
        marks = F.one_hot(status, _DONE + 1).to(dtype)
        if self.rnn is None:
            slots = torch.cat((features, marks), -1).flatten(1)
        else:
            slots = self._read(self.rnn, goals, features, marks)
        current = (features * (status == _CURRENT)[..., None]).sum(1)
        return torch.cat((self.net(slots), current), -1)

    def _read(
        self, rnn: nn.GRU, goals: Tensor, features: Tensor, marks: Tensor
    ) -> Float[Tensor, "R hidden"]:
        """The GRU's state after the last word of the last goal; nothing that follows is read."""
        present = marks[..., _ABSENT] == 0
        words = (goals != 0) & present[..., None] if self.tokens is not None else present[..., None]
        count = words.shape[2]
        items = features.reshape(goals.shape[0], goals.shape[1] * count, -1)
        states, _ = rnn(torch.cat((items, marks.repeat_interleave(count, 1)), -1))
        place = torch.arange(items.shape[1], device=goals.device)
        last = (words.flatten(1) * place).amax(1)
        read: Tensor = states[torch.arange(goals.shape[0], device=goals.device), last]
        return read

    def _goals(self, goals: Tensor, dtype: torch.dtype) -> Float[Tensor, "M k width"]:
        if self.tokens is not None:
            embedded: Tensor = self.tokens(goals.long())
            return embedded.flatten(2)
        low, span = self.low.to(dtype), self.span.to(dtype)
        scaled = 2.0 * (goals.to(dtype) - low) / span - 1.0
        one_hot = (goals[..., None] == self.choices).flatten(2).to(dtype)
        return torch.cat((scaled, one_hot), -1)
