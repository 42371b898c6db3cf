"""Dark Key-To-Door in the shape that others have measured: 8×8, attempts of 50, 500 steps."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

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
    set=("env.kwargs.grid=8", "env.kwargs.trial_limit=50", "env.kwargs.horizon=500"),
    probes=(Probe("4000-steps", ("env.kwargs.horizon=4000",), episodes=64),),
    view="trials",
    adaptation=True,
    control="no memory",
    holds=("full > no memory, intervals apart",),
    caveats=(
        "A key and a door earn 1 each. Others count doors: 27.4 with the authors' code after 8M "
        "steps (GRU 29.6, no memory 2.0), read second-hand.",
    ),
)
