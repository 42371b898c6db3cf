"""Crafter: every goal of Table 1 asked for alone."""

from __future__ import annotations

from amago.envs.domains.crafter.goals import TABLE_GOALS
from amago.reproduce.entry import Experiment, Probe, Variant

ENTRY = Experiment(
    paper="Table 1",
    claim="crafter-goals-asked-for-alone",
    question="Which of Crafter's goals are met when they are asked for?",
    measure="instructions complete",
    metric="success",
    preset="crafter",
    arms=(
        Variant("full"),
        Variant("no relabeling", "no-relabeling"),
        Variant("no memory", "no-memory"),
        Variant("no multi-goal", "no-multi-goal"),
        Variant("no planning", "no-planning"),
        Variant("no importance sampling", "no-importance-sampling"),
        Variant("tech tree", set=("env.kwargs.instructions=tech-tree",)),
        Variant("expanded", set=("env.kwargs.expanded=True",)),
    ),
    seeds=(0,),
    epochs=550,
    probes=(Probe("instructions", instructions=TABLE_GOALS, episodes=100),),
    view="instructions",
    control="no relabeling",
    holds=("full > no relabeling, intervals apart", "full > random play"),
    caveats=("500 steps and hours of a CPU; the paper: 2,000 steps and 2,000 epochs on a GPU.",),
)
