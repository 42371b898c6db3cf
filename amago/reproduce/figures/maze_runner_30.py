"""MazeRunner 30×30 at 1,000 steps: too sparse without hindsight."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

ENTRY = Experiment(
    paper="Figure 8, right",
    claim="large-mazes-need-hindsight-and-memory",
    question="Which parts does MazeRunner need at 31×31?",
    measure="instructions complete",
    metric="success",
    preset="maze-runner",
    arms=(
        Variant("full"),
        Variant("no relabeling", "no-relabeling"),
        Variant("no memory", "no-memory"),
        Variant("no planning", "no-planning"),
        Variant("world model", "world-model"),
    ),
    set=("env.kwargs.size=31", "env.kwargs.horizon=1000"),
    seeds=(0,),
    epochs=1000,
    control="no memory",
    holds=("full > no relabeling, intervals apart", "full > no memory, intervals apart"),
    caveats=("Mazes have odd sizes: 31×31 stands for the paper's 30×30.",),
)
