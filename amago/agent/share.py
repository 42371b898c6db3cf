"""What one rank learns from in one update: some sequences of a batch, in one or more parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from amago.nets.place import Place
from amago.types import Array, Batch


@dataclass(frozen=True)
class Part:
    """Some sequences of a batch."""

    numbers: Int[Tensor, " B"]
    """Which ones."""
    lengths: tuple[int, ...]
    place: Place

    def of(self, batch: Batch) -> Batch:
        """The same batch without the other sequences."""

        def chosen(name: str, value: Any) -> Any:
            if name == "lengths":
                return self.lengths
            if isinstance(value, dict):
                return {key: chosen(f"obs/{key}", item) for key, item in value.items()}
            per_sequence = name in ("instruction", "num_goals")
            index = self.numbers if per_sequence else self.place.rows
            return None if value is None else value.index_select(0, index)

        return Batch(**{name: chosen(name, value) for name, value in vars(batch).items()})


@dataclass(frozen=True)
class Share:
    """One rank's sequences of a batch."""

    batch: Batch
    place: Place | None = None
    """Where they lie in the whole batch; None: they are all of it."""
    parts: tuple[Part, ...] = ()
    """Of these sequences, to be learned from one after the other; none: all at once."""
    finite: bool = True
    """Whether the whole batch, on all ranks, is free of NaN and infinity."""

    def to(self, device: torch.device | str) -> Share:
        return self.map(lambda x: x.to(device))

    def map(self, change: Callable[[Tensor], Tensor]) -> Share:
        """The same with every tensor changed, such as moved."""
        mapped: Share = _mapped(self, change)
        return mapped

    def place_of(self, part: Part) -> Place:
        """Where the rows of one of its parts lie in the whole batch."""
        own, inner = self.place, part.place
        if own is None:
            return inner
        return Place(
            own.rows.index_select(0, inner.rows),
            own.transitions.index_select(0, inner.transitions),
            own.num_rows,
            own.num_transitions,
        )


def share_batch(batch: Batch, num_ranks: int = 1, accumulate: int = 1) -> list[Share]:
    """Deal the sequences of a batch out to ranks, and each rank's to its parts.

    Sequences lie from long to short, so dealing them out in turn gives everybody about as many
    rows, and as many long ones.
    """
    count = len(batch.lengths)
    if count < num_ranks * accumulate:
        raise ValueError(
            f"expected a batch of at least {num_ranks * accumulate} windows for {num_ranks} "
            f"learners × --optim.accumulate {accumulate}, got {count}; raise --replay.batch-size "
            "(or --replay.batch-rows), or use fewer learners"
        )
    finite = _is_finite(batch)
    if num_ranks == 1:
        return [Share(batch, None, _parts(batch.lengths, accumulate), finite)]
    own = [_part(batch.lengths, range(rank, count, num_ranks)) for rank in range(num_ranks)]
    return [
        Share(part.of(batch), part.place, _parts(part.lengths, accumulate), finite) for part in own
    ]


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in value)
    if isinstance(value, Share | Part | Place | Batch):
        return replace(value, **{k: _mapped(item, change) for k, item in vars(value).items()})
    return value


def _is_finite(batch: Batch) -> bool:
    """Whether no real number of a batch is NaN or infinite."""
    arrays = [batch.prev_action, batch.prev_reward, *batch.obs.values()]
    return all(bool(torch.isfinite(x).all()) for x in arrays if x.is_floating_point())


def _parts(lengths: Sequence[int], count: int) -> tuple[Part, ...]:
    if count == 1:
        return ()
    return tuple(_part(lengths, range(n, len(lengths), count)) for n in range(count))


def _part(lengths: Sequence[int], numbers: range) -> Part:
    sizes, chosen = np.array(lengths), np.array(numbers)
    place = Place(
        _within(sizes, chosen), _within(sizes - 1, chosen), sum(lengths), sum(lengths) - len(sizes)
    )
    return Part(torch.from_numpy(chosen), tuple(lengths[n] for n in numbers), place)


def _within(sizes: Array, chosen: Array) -> Tensor:
    """Rows of the chosen sequences, where all sequences of these sizes lie end to end."""
    ends = sizes.cumsum()
    rows = [np.arange(ends[n] - sizes[n], ends[n]) for n in chosen]
    return torch.from_numpy(np.concatenate(rows))
