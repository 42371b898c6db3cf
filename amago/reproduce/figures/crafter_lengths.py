"""Crafter: success by the length of the instruction, with and without the plan in view."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

ENTRY = Experiment(
    paper="Figure 28",
    claim="a-plan-in-view-helps-long-instructions",
    question="Does it help to see the whole instruction?",
    measure="instructions complete",
    metric="success",
    preset="crafter",
    arms=(Variant("full"), Variant("no planning", "no-planning")),
    seeds=(0,),
    epochs=550,
    probes=(Probe("lengths", episodes=500),),
    view="lengths",
    control="no planning",
    holds=("full > no planning, intervals apart",),
    caveats=("Dotted: single goals' success to the power of the length, as if independent.",),
)
