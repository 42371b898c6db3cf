"""Half-Cheetah Velocity: three trials to find out how fast to run."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

ENTRY = Experiment(
    paper="Figure 5, left",
    claim="half-cheetah-finds-its-speed-in-a-trial",
    question="Does Half-Cheetah find out within a trial how fast to run?",
    measure="return of three trials",
    preset="half-cheetah-velocity",
    arms=(
        Variant("full"),
        Variant("GRU", "gru"),
        Variant("no memory", "no-memory"),
    ),
    view="trials",
    control="no memory",
    holds=("full > no memory, intervals apart",),
    caveats=("The paper's other baselines (variBAD, BOReL, RL²) were not run.",),
)
