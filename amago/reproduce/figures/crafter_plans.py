"""Crafter: progress on a hard goal alone, and on a plan that ends in it, over training."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

_PLANS = (
    "collect stone",
    "collect wood, place table, make wood pickaxe, collect stone",
    "make stone pickaxe",
    "collect wood, place table, make wood pickaxe, collect stone, make stone pickaxe",
    "collect coal",
    "collect wood, place table, make wood pickaxe, collect coal",
)

ENTRY = Experiment(
    paper="Figure 24",
    claim="plans-lead-to-hard-goals-sooner",
    question="Does a plan lead to a hard goal before the goal alone does?",
    measure="instructions complete",
    metric="success",
    preset="crafter",
    arms=(Variant("full"),),
    set=("run.keep_interval=10",),
    seeds=(0,),
    epochs=550,
    probes=(Probe("plans", instructions=_PLANS, which="kept", episodes=50),),
    view="plans",
    holds=("full > random play",),
    caveats=("Goals and plans of our own choice; the paper's are in its figure alone.",),
)
