"""Crafter: the whole distribution of instructions and a few of several goals."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

INSTRUCTIONS = (
    "collect sapling, place plant, eat cow",
    "eat cow, collect drink, wake up",
    "collect wood, place table, make wood pickaxe",
    "collect wood, place table, make wood pickaxe, collect stone",
    "make wood pickaxe, collect stone, make stone pickaxe",
    "make stone pickaxe, collect iron",
    "travel to (10, 10), place stone, travel to (50, 50), place stone",
    "defeat zombie, defeat skeleton",
)

ENTRY = Experiment(
    paper="Figure 9 and Figure 25",
    claim="crafter-follows-instructions-of-several-goals",
    question="Does the agent follow instructions of several goals in Crafter?",
    measure="instructions complete",
    metric="success",
    preset="crafter",
    arms=(
        Variant("full"),
        Variant("no relabeling", "no-relabeling"),
        Variant("no memory", "no-memory"),
        Variant("no multi-goal", "no-multi-goal"),
        Variant("no planning", "no-planning"),
    ),
    seeds=(0,),
    epochs=550,
    probes=(Probe("instructions", instructions=INSTRUCTIONS, episodes=100),),
    view="instructions",
    control="no relabeling",
    holds=("full > no relabeling, intervals apart", "full > no multi-goal, intervals apart"),
    caveats=("Instructions of our own choice beside those that the paper names.",),
)
