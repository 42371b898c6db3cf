"""Crafter: learning curves with and without importance sampling of goals."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

ENTRY = Experiment(
    paper="Figure 26",
    claim="rare-goals-first-shortens-plateaus",
    question="Does sampling rare goals first shorten the plateaus of Crafter?",
    measure="instructions complete",
    metric="success",
    preset="crafter",
    arms=(
        Variant("full"),
        Variant("no importance sampling", "no-importance-sampling"),
    ),
    seeds=(0,),
    epochs=550,
    control="no importance sampling",
    holds=("full >= no importance sampling",),
    caveats=("One seed, as in the paper. Evaluations, where the paper has training rollouts.",),
)
