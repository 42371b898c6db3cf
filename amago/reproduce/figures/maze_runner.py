"""MazeRunner 15×15 at the paper's 400 steps."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant
from amago.reproduce.figures.other_methods import FOUR_HOURS

ENTRY = Experiment(
    paper="Figure 8, left",
    claim="hindsight-solves-mazes-of-fifteen",
    question="Which parts does MazeRunner need at 15×15?",
    measure="instructions complete",
    metric="success",
    preset="maze-runner",
    arms=(
        Variant("full"),
        Variant("no relabeling", "no-relabeling"),
        Variant("no relabeling, one discount", "no-relabeling no-multi-gamma"),
        Variant("no multi-gamma", "no-multi-gamma"),
        Variant("no memory", "no-memory"),
        Variant("position hidden", set=("env.kwargs.position=False",)),
        Variant("Recurrent PPO", on_cpu=FOUR_HOURS, baseline="recurrent-ppo"),
    ),
    set=("env.kwargs.horizon=400",),
    seeds=(0, 1),
    epochs=1000,
    control="no memory",
    holds=("full > no relabeling, intervals apart", "full >= 0.9", "position hidden >= 0.85"),
    caveats=("The paper: 91% without position.",),
)
