"""Dark Key-To-Door 9×9: Transformer against GRU."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant
from amago.reproduce.figures.beside_dark_key_to_door import BUDGET

ENTRY = Experiment(
    paper="Figure 19",
    claim="a-transformer-beats-recurrence-in-dark-rooms",
    question="Does a Transformer learn Dark Key-To-Door where a GRU does not?",
    measure="return of 500 steps",
    preset="dark-key-to-door",
    arms=(Variant("full"), Variant("GRU", "gru")),
    set=("env.kwargs.grid=9", "env.kwargs.trial_limit=50", "env.kwargs.horizon=500"),
    on_cpu=BUDGET,
    seeds=(0, 1),
    adaptation=True,
    control="GRU",
    holds=("full > GRU, intervals apart",),
    caveats=("Far fewer updates than in the paper, with networks that a CPU can train.",),
)
