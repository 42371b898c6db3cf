"""MazeRunner: reach places in an unknown maze, one after the other."""

from __future__ import annotations

from amago.envs.domain import Domain
from amago.envs.domains.maze_runner.task import MazeRunner
from amago.presets.base import PAPER_INSTRUCTED, RECIPE, Preset
from amago.presets.sizes import Size

_CPU = {
    "env.id": "amago/MazeRunner-v0",
    # 100 steps instead of 400 leave little time to stray.
    "env.kwargs": {"size": 15, "horizon": 100},
    "run.epochs": 100,
    "run.updates_per_epoch": 100,
    "run.eval_episodes": 96,
}
_SIZE = Size(128, 3, 8, encoder=(128, 128, 128), heads=(256, 256))
_PAPER = {**_SIZE.settings(), "env.id": "amago/MazeRunner-v0", "env.kwargs": {"size": 15}}

DOMAIN = Domain(
    make=MazeRunner,
    ids={"amago/MazeRunner-v0": {}},
    presets={
        "maze-runner": Preset(
            "MazeRunner, 15×15 in 100 steps: reach up to three places in an unknown maze",
            RECIPE,
            _CPU,
        ),
        "maze-runner/paper": Preset(
            "MazeRunner, 15×15, sizes of the paper's Tables 3 and 4", PAPER_INSTRUCTED, _PAPER
        ),
        "maze-runner-30/paper": Preset(
            'MazeRunner, 31×31 ("30"), sizes of the paper\'s Tables 3 and 4',
            PAPER_INSTRUCTED,
            {**_PAPER, "env.kwargs": {"size": 31}},
        ),
    },
    paper_size=_SIZE,
    action_names=("left", "up", "right", "down"),
    picture="blue: agent; green: places to reach, the next one ringed; grey: done, and the start",
    sees="free cells to each of four sides, then x and y where they are shown",
)
