"""Line charts as SVG text that takes its colours from the page around it: light or dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 560, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 40
_TICKS = 4

_Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """One curve; `kind` is a CSS class of the page, such as agent, faint, random or oracle."""

    points: _Points
    kind: str


def chart(lines: Mapping[str, Line], x_label: str, y_label: str) -> str:
    """Curves by name with axes and a legend; empty if there is nothing to draw."""
    finite = {
        name: [point for point in line.points if all(map(math.isfinite, point))]
        for name, line in lines.items()
    }
    points = [point for kept in finite.values() for point in kept]
    if not points:
        return ""
    x_ticks, y_ticks = _ticks([x for x, _ in points]), _ticks([y for _, y in points])
    across = _Scale(x_ticks, _LEFT, _WIDTH - _RIGHT)
    up = _Scale(y_ticks, _HEIGHT - _BOTTOM, _TOP)

    def drawn(name: str) -> str:
        kept = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in finite[name])
        return f'<polyline class="{escape(lines[name].kind)}" points="{kept}"/>'

    parts = [_grid(x_ticks, y_ticks, across, up)]
    parts += [drawn(name) for name, kept in finite.items() if len(kept) > 1]
    parts += [
        f'<circle class="{escape(lines[name].kind)}" cx="{across(x):.1f}" cy="{up(y):.1f}" '
        'r="2.5"/>'
        for name, kept in finite.items()
        for x, y in kept
        if len(kept) < 30
    ]
    parts.append(
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 4}" class="mid">{escape(x_label)}</text>'
    )
    legend = "".join(
        f'<span><i class="{escape(line.kind)}"></i>{escape(name)}</span>'
        for name, line in lines.items()
        if finite[name]
    )
    return (
        f'<figure><figcaption>{escape(y_label)}</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'role="img" aria-label="{escape(y_label)} over {escape(x_label)}">{"".join(parts)}</svg>'
        f'<div class="legend">{legend}</div></figure>'
    )


def _grid(x_ticks: list[float], y_ticks: list[float], across: _Scale, up: _Scale) -> str:
    lines = [
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{up(y):.1f}" y2="{up(y):.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{up(y) + 4:.1f}" class="end">{_short(y)}</text>'
        for y in y_ticks
    ]
    lines += [
        f'<text x="{across(x):.1f}" y="{_HEIGHT - _BOTTOM + 16}" class="mid">{_short(x)}</text>'
        for x in x_ticks
    ]
    return "".join(lines)


class _Scale:
    """From values to pixels."""

    def __init__(self, ticks: list[float], start: float, stop: float) -> None:
        self._low, self._span = ticks[0], (ticks[-1] - ticks[0]) or 1.0
        self._start, self._length = start, stop - start

    def __call__(self, value: float) -> float:
        return self._start + (value - self._low) / self._span * self._length


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers that span the values."""
    low, high = min(values), max(values)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / _TICKS
    magnitude = 10.0 ** math.floor(math.log10(rough))
    unit = next(step * magnitude for step in (1, 2, 5, 10) if step * magnitude >= rough * 0.999)
    first, last = math.floor(low / unit + 1e-9), math.ceil(high / unit - 1e-9)
    return [number * unit for number in range(first, last + 1)]


def _short(value: float) -> str:
    """12.5k rather than 12500."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.4g}{name}"
    return f"{value:.3g}" if value else "0"
