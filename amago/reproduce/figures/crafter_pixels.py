"""Crafter from pixels and from textures."""

from __future__ import annotations

from amago.envs.domains.crafter.goals import TABLE_GOALS
from amago.reproduce.entry import Experiment, Probe, Variant

ENTRY = Experiment(
    paper="Table 2",
    claim="crafter-works-from-pixels-too",
    question="Does Crafter work from pixels as it does from textures?",
    measure="instructions complete",
    metric="success",
    preset="crafter",
    arms=(Variant("full"), Variant("pixels", set=("env.kwargs.observation=pixels",))),
    seeds=(0,),
    epochs=550,
    probes=(Probe("instructions", instructions=TABLE_GOALS, episodes=100),),
    view="instructions",
    control="pixels",
    holds=("pixels > random play",),
    caveats=("Hours of a CPU; the paper trains 2,000 epochs on a GPU.",),
)
