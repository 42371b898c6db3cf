"""Attention over one rollout as a PNG file, with what happened there."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from amago.report.panels import PALETTE
from amago.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOTS_PER_INCH = 130
_MAX_TICKS = 40
"""More events of one kind than that would be a block."""
_CAPTION_CHARACTERS = 84
_STYLES = {"trial starts": "#777777", "rewards": PALETTE[4], "goals": PALETTE[2]}


@dataclass(frozen=True)
class Attention:
    """What every head of every layer attended to in one rollout, and what happened in it."""

    layers: Sequence[Array]
    """Weights [H, T, T] of each layer: the row that attends, then the row attended to."""
    entropies: Sequence[Array]
    """Mean entropy in nats of each head [H], by layer."""
    events: dict[str, list[int]]
    """Rows of trial starts, rewards and goals, where there are any."""

    @property
    def telling_head(self) -> tuple[int, int]:
        """Layer and head whose attention goes to events the most, beyond what is even."""
        scores = {
            (layer, head): self.share(weights[head])[0] - self.share(weights[head])[1]
            for layer, weights in enumerate(self.layers)
            for head in range(len(weights))
        }
        if not self._rows:
            # Nothing happened: the head that is furthest from attending evenly.
            entropies = {
                (layer, head): float(values[head])
                for layer, values in enumerate(self.entropies)
                for head in range(len(values))
            }
            return min(entropies, key=lambda place: entropies[place])
        return max(scores, key=lambda place: scores[place])

    def share(self, weights: Array) -> tuple[float, float]:
        """Attention [T, T] to past rewards, goals and trial starts, and what even attention
        would give them; means over the rows after the first event."""
        rows = self._rows
        if not rows or rows[0] + 1 >= len(weights):
            return 0.0, 0.0
        later = range(rows[0] + 1, len(weights))
        given = [float(weights[t, [row for row in rows if row < t]].sum()) for t in later]
        even = [sum(row < t for row in rows) / (t + 1) for t in later]
        return float(np.mean(given)), float(np.mean(even))

    @property
    def _rows(self) -> list[int]:
        return sorted({row for rows in self.events.values() for row in rows})


def caption(attention: Attention) -> str:
    """What there is to see."""
    layer, head = attention.telling_head
    given, even = attention.share(attention.layers[layer][head])
    name = f"Layer {layer + 1}, head {head + 1}"
    how = "Each row is a step; bright places are the past steps that it attends to. "
    if not even:
        return how + (
            f"{name} (framed) attends the least evenly. No event is marked: no trial began, and "
            "rewards came at most steps or at none."
        )
    ratio = given / even
    verdict = (
        f"{ratio:.1f} times as much as even attention would give them"
        if ratio >= 1.1
        else "no more than even attention would give them"
    )
    kinds = " and ".join(attention.events)
    return (
        how
        + f"{name} (framed) gives {given:.0%} of its attention to steps with {kinds}: {verdict}."
    )


def plot_attention(
    attention: Attention, path: str | Path | IO[bytes], *, captioned: bool = True
) -> None:
    """The head that attends to events the most, large, beside all heads of all layers."""
    from matplotlib.figure import Figure

    num_layers, num_heads = len(attention.layers), len(attention.layers[0])
    width = 5.4 + 1.5 * num_heads
    figure = Figure(figsize=(width, max(5.6, 1.6 * num_layers + 1.2)), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(5.4, 1.5 * num_heads + 0.3))
    large, small = halves
    layer, head = attention.telling_head
    image = _draw_large(large.subplots(), attention, layer, head)
    large.colorbar(image, ax=large.axes, label="attention (root scale)", shrink=0.7)
    grid: Any = small.subplots(num_layers, num_heads, squeeze=False)
    for number, (row, weights) in enumerate(zip(grid, attention.layers, strict=True)):
        for index, axes in enumerate(row):
            _show(axes, weights[index])
            nats = attention.entropies[number][index]
            axes.set_title(f"{number + 1}.{index + 1}: {nats:.1f} nats", fontsize=7)
            axes.set(xticks=[], yticks=[])
            if (number, index) == (layer, head):
                for spine in axes.spines.values():
                    spine.set(color=PALETTE[1], linewidth=2.5)
    small.suptitle("layer.head, mean entropy", fontsize=9)
    if captioned:
        lines = textwrap.fill(caption(attention), int(width * _CAPTION_CHARACTERS / 8))
        figure.supxlabel(lines, fontsize=9, ha="left", x=0.02)
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def _draw_large(axes: Axes, attention: Attention, layer: int, head: int) -> Any:
    weights = attention.layers[layer][head]
    image = _show(axes, weights)
    axes.set(xlabel="step attended to", ylabel="step that attends")
    pad = 6 + 13 * len(attention.events)  # room for the ticks
    axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=10, color=PALETTE[1], pad=pad)
    last = len(weights) - 1
    for level, (name, rows) in enumerate(attention.events.items()):
        shown = rows[:_MAX_TICKS]
        at = 1.02 + 0.035 * level
        marks: dict[str, Any] = {
            "color": _STYLES[name],
            "markersize": 9,
            "markeredgewidth": 2,
            "clip_on": False,
        }
        # Above the picture where it happened, and beside it when.
        above, right = axes.get_xaxis_transform(), axes.get_yaxis_transform()
        axes.plot(shown, [at] * len(shown), "|", transform=above, label=name, **marks)
        axes.plot([at] * len(shown), shown, "_", transform=right, **marks)
    axes.set(xlim=(-0.5, last + 0.5), ylim=(last + 0.5, -0.5))
    if attention.events:
        axes.legend(fontsize=8, loc="lower left", framealpha=0.85)
    return image


def _show(axes: Axes, weights: Array) -> Any:
    """On a root scale: attention to a single far step would vanish beside the diagonal."""
    return axes.imshow(weights**0.5, vmin=0.0, vmax=1.0, cmap="magma", aspect="auto")
