"""A run's evaluations: new worlds and new action noise each time, the final test apart."""

from __future__ import annotations

import contextlib
from pathlib import Path

from test_run_helpers import tiny

from amago.evaluation.play import make_lanes, make_policy, play
from amago.training.evaluation import evaluate_run, evaluation_settings, final_test_settings
from amago.training.run import TrainingRun
from amago.training.start import create

CONFIG = tiny("dark-key-to-door", {"env.eval_lanes": 3, "run.eval_episodes": 7})


def _worlds(run: TrainingRun, epoch: int) -> list[int]:
    run.epoch = epoch
    return [record.world_seed for record in evaluate_run(run)]


def test_every_evaluation_plays_worlds_that_no_other_one_plays(tmp_path: Path) -> None:
    with contextlib.closing(create(tmp_path / "run", CONFIG, seed=5)) as run:
        met = [_worlds(run, epoch) for epoch in (1, 2, 3, 10)]
        assert [len(worlds) for worlds in met] == [7] * 4
        assert len({world for worlds in met for world in worlds}) == 28
        # A function of the epoch alone, so that a resumed run plays the same ones.
        assert _worlds(run, 2) == met[1]


def test_every_evaluation_has_its_own_action_noise() -> None:
    seeds = [evaluation_settings(CONFIG, 5, epoch).action_seed for epoch in (1, 2, 3)]
    assert len({*seeds, final_test_settings(CONFIG, 5).action_seed}) == 4


def test_the_final_test_shares_no_world_with_any_evaluation(tmp_path: Path) -> None:
    with contextlib.closing(create(tmp_path / "run", CONFIG, seed=5)) as run:
        seen = {world for epoch in range(1, 4) for world in _worlds(run, epoch)}
        settings = final_test_settings(CONFIG, 5)
        with contextlib.closing(make_lanes(CONFIG.env, settings)) as lanes:
            tested = play(make_policy(run.agent, settings), lanes, settings.episodes)
    assert not seen & {record.world_seed for record in tested}
