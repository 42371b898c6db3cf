"""MazeRunner whose directions are permuted in every maze, with continuous actions."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant
from amago.reproduce.figures.other_methods import FOUR_HOURS

ENTRY = Experiment(
    paper="Figure 22",
    claim="rewired-directions-are-found-out-in-play",
    question="Can the agent find out what its actions do, if every maze permutes them?",
    measure="instructions complete",
    metric="success",
    preset="maze-runner",
    arms=(
        Variant("full"),
        Variant("no relabeling", "no-relabeling"),
        Variant("no memory", "no-memory"),
        Variant("RL²", on_cpu=FOUR_HOURS, baseline="recurrent-ppo"),
    ),
    set=("env.kwargs.horizon=400", "env.kwargs.rewired=True", "env.kwargs.continuous=True"),
    seeds=(0, 1),
    epochs=1000,
    control="no memory",
    holds=("full > no memory, intervals apart", "full > RL², intervals apart"),
    caveats=("RL² is Recurrent PPO with our inputs. variBAD and HyperX were not run.",),
)
