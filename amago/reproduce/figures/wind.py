"""Wind: fly to a goal against a wind that only memory can feel."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

ENTRY = Experiment(
    paper="Figure 5, bottom right",
    claim="wind-is-felt-by-any-memory",
    question="Do Transformer and GRU feel the wind?",
    measure="return of 75",
    preset="wind",
    arms=(
        Variant("full"),
        Variant("GRU", "gru"),
        Variant("no memory", "no-memory"),
    ),
    control="no memory",
    holds=("full > no memory, intervals apart", "GRU > no memory, intervals apart"),
    caveats=("A memory-free agent still sees its last action beside its position.",),
)
