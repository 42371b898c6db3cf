"""Attention maps of one rollout as a PNG file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from amago.types import Array

DOTS_PER_INCH = 130


def plot_attention(layers: Sequence[Array], entropies: Sequence[Array], path: str | Path) -> None:
    """One row of panels per layer, one panel per head: weights [H, T, T] on a root scale,
    because attention to a single far step would vanish beside the diagonal."""
    from matplotlib.figure import Figure

    heads = len(layers[0])
    figure = Figure(figsize=(2.4 * heads, 2.5 * len(layers)), layout="constrained")
    grid = figure.subplots(len(layers), heads, squeeze=False)
    for row, weights, entropy, number in zip(
        grid, layers, entropies, range(1, len(layers) + 1), strict=True
    ):
        for axes, head, nats in zip(row, weights, entropy, strict=True):
            image = axes.imshow(head**0.5, vmin=0.0, vmax=1.0, cmap="magma", aspect="auto")
            axes.set_title(f"layer {number}, entropy {nats:.2f}", fontsize=8)
            axes.tick_params(labelsize=6)
    figure.colorbar(image, ax=grid, label="square root of the attention weight", shrink=0.8)
    figure.supxlabel("step attended to", fontsize=9)
    figure.supylabel("step that attends", fontsize=9)
    figure.savefig(path, dpi=DOTS_PER_INCH)
