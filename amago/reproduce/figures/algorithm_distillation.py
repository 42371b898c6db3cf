"""Fast adaptation beside Algorithm Distillation on 8×8 Dark Key-To-Door."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant
from amago.reproduce.figures.beside_dark_key_to_door import BUDGET, SHAPE

_LONG = ("env.kwargs.horizon=2000",)
"""As long as a learning history."""

ENTRY = Experiment(
    paper="Figure 20",
    claim="learning-to-adapt-beats-imitating-learners",
    question="Does the agent adapt faster than Algorithm Distillation?",
    measure="return of a rollout",
    preset="dark-key-to-door",
    arms=(
        Variant("full"),
        Variant("Algorithm Distillation", set=_LONG, baseline="algorithm-distillation"),
    ),
    set=SHAPE,
    on_cpu=BUDGET,
    probes=(
        Probe("first-500", _LONG, measure="first-doors", greedy=False, lanes=100),
        Probe("last-500", _LONG, measure="last-doors", greedy=False, lanes=100),
    ),
    view="trials",
    control="Algorithm Distillation",
    holds=(
        "first-500 of full > first-500 of Algorithm Distillation, intervals apart",
        "last-500 of Algorithm Distillation > first-500 of Algorithm Distillation",
    ),
    caveats=(
        "Returns are of 500 steps for the agent, of 2,000, a learning history, for Algorithm "
        "Distillation; the probes count doors of both in the same worlds for 2,000 steps.",
        "Algorithm Distillation has histories of 400 tabular learners over 2,000 steps; the paper "
        "has 700 actor-critic networks over 50,000.",
    ),
)
