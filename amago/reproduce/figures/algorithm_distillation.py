"""Fast adaptation beside Algorithm Distillation on 8×8 Dark Key-To-Door."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant
from amago.reproduce.figures.beside_dark_key_to_door import BUDGET, SHAPE

ENTRY = Experiment(
    paper="Figure 20",
    claim="learning-to-adapt-beats-imitating-learners",
    question="Does the agent adapt faster than Algorithm Distillation?",
    measure="return of 500 steps",
    preset="dark-key-to-door",
    arms=(
        Variant("full"),
        Variant("Algorithm Distillation", baseline="algorithm-distillation"),
    ),
    set=SHAPE,
    on_cpu=BUDGET,
    view="trials",
    control="Algorithm Distillation",
    holds=("full > Algorithm Distillation, intervals apart",),
    caveats=("Algorithm Distillation has histories of fewer source agents than the paper's 700.",),
)
