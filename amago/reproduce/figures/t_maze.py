"""Passive T-Maze: recall the first step at the last, over corridor lengths."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

_CORRIDORS = (32, 100, 256)

ENTRY = Experiment(
    paper="Figure 5, top right",
    claim="the-first-step-is-recalled-at-the-last",
    question="Over how long a corridor is the first step recalled at the last?",
    measure="greedy return",
    preset="t-maze",
    arms=tuple(
        Variant(name, ablate, (f"env.kwargs.corridor={length}",), f"corridor {length}")
        for length in _CORRIDORS
        for name, ablate in (("full", ""), ("GRU", "gru"), ("no memory", "no-memory"))
    ),
    control="no memory",
    holds=("full > no memory, intervals apart", "full >= 0.95"),
    caveats=("The paper goes on to corridors of 10,000.",),
)
