"""MazeRunner as others have measured the authors' code: 15×15, shuffled directions, 3 goals."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

ENTRY = Experiment(
    paper="the authors' code, MazeRunner",
    claim="goals-reached-with-a-tenth-of-the-samples",
    question="Which share of MazeRunner's goals is reached with a tenth of the authors' samples?",
    measure="instructions complete",
    metric="success",
    preset="maze-runner",
    arms=(Variant("full"), Variant("GRU", "gru"), Variant("no memory", "no-memory")),
    set=(
        "env.kwargs.size=15", "env.kwargs.rewired=True", "env.kwargs.min_goals=3",
        "env.kwargs.horizon=500",
    ),
    on_cpu=("env.num_lanes=32", "run.epochs=50", "run.updates_per_epoch=200"),
    seeds=(0, 1),
    probes=(
        Probe("goals", measure="goals", greedy=True, episodes=256, lanes=128),
        Probe("goals-sampled", measure="goals", greedy=False, episodes=256, lanes=128),
    ),
    view="beside",
    control="no memory",
    holds=("goals of full >= 0.737", "env_steps of full <= 800000"),
    caveats=(
        "Their environment has a fifth action, to stay.",
        "goals-sampled draws actions from the policy; the authors' code acted greedily.",
    ),
)  # fmt: skip
