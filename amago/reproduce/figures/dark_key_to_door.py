"""Dark Key-To-Door, 8×8: trial after trial in one room. Shares its runs with the comparison."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant
from amago.reproduce.figures.beside_dark_key_to_door import BUDGET, SHAPE

ENTRY = Experiment(
    paper="Figure 5, centre",
    claim="dark-rooms-are-searched-once-and-then-known",
    question="Does the agent search a dark room once and then know it?",
    measure="return of 500 steps",
    preset="dark-key-to-door",
    arms=(
        Variant("full"),
        Variant("GRU", "gru"),
        Variant("no memory", "no-memory"),
    ),
    set=SHAPE,
    on_cpu=BUDGET,
    view="trials",
    adaptation=True,
    control="no memory",
    holds=("full > no memory, intervals apart",),
    caveats=("Algorithm Distillation in the same rooms: Figure 20.",),
)
