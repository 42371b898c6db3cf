"""Two learner ranks over gloo learn what one learner does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.multiprocessing
from safetensors.torch import load_file
from test_scale_helpers import CASES, KillAfter, assert_same_learning, learn, other_ranks

import amago
from amago.agent.share import share_batch
from amago.config import override
from amago.scale.learn_feed import _ahead
from amago.scale.learn_group import Group, LearnerLostError, Seat, digest, open_store
from amago.training.view import Silent

pytestmark = pytest.mark.usefixtures("no_curves")

TINY = {
    "env.kwargs.corridor": 6,
    "env.num_lanes": 4,
    "env.eval_lanes": 2,
    "replay.batch_size": 5,
    "replay.batch_rows": None,
    "run.epochs": 4,
    "run.updates_per_epoch": 4,
    "run.eval_interval": 4,
    "run.eval_episodes": 2,
    "run.final_eval_episodes": 2,
    "run.save_interval": 10,
    "run.threads": 1,
    "run.report": False,
    "transformer.model_dim": 16,
    "transformer.num_heads": 2,
    "encoder.hidden": (16, 8),
    "heads.hidden": (16,),
}


def tiny_run(**changes):
    return override(amago.preset("t-maze"), TINY | changes)


def rank_of_all_cases(rank: int, port: int, folder: str) -> None:
    torch.set_num_threads(1)
    group = Group(Seat(rank, 2, rank, f"127.0.0.1:{port}"))
    group.use(torch.device("cpu"), 600.0)
    for number, case in enumerate(CASES.values()):
        accumulate = 1 + number % 2

        def shares(batch, accumulate=accumulate):
            return share_batch(batch, 2, accumulate)[rank]

        found = learn(case, shares, group.add)
        digests = group.gather(digest(found["state"]))
        torch.save({**found, "digests": digests}, Path(folder) / f"{number}-{rank}.pt")
    group.close()


@pytest.fixture(scope="module")
def of_two_ranks(tmp_path_factory):
    """Every case by two ranks, each other case in two parts on each of them."""
    folder = tmp_path_factory.mktemp("ranks")
    store = open_store("127.0.0.1")
    torch.multiprocessing.spawn(rank_of_all_cases, (store.port, str(folder)), nprocs=2)
    return {
        (name, rank): torch.load(folder / f"{number}-{rank}.pt")
        for number, name in enumerate(CASES)
        for rank in range(2)
    }


@pytest.mark.parametrize("name", CASES)
def test_two_ranks_learn_what_one_does_and_stay_equal_bit_for_bit(name, of_two_ranks):
    case = CASES[name]
    whole = learn(case, lambda batch: share_batch(batch)[0])
    for rank in range(2):
        assert_same_learning(case, of_two_ranks[name, rank], whole)
    first, second = of_two_ranks[name, 0]["digests"]
    assert first == second


def weights(run_dir):
    return load_file(max(run_dir.glob("checkpoints/*/model.safetensors")))


def assert_close(one, other, error=1e-3):
    got, want = weights(one), weights(other)
    assert got.keys() == want.keys()
    for name, value in want.items():
        assert torch.allclose(got[name], value, atol=error), name


class StopAfter(Silent):
    """Ctrl-C after an epoch."""

    def __init__(self, epoch):
        self.when = epoch

    def epoch(self, metrics, timing):
        if metrics["epoch"] == self.when:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run of one learner."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    amago.train(tiny_run(), seed=1, run_dir=folder)
    return folder


def test_a_killed_rank_stops_the_run_which_goes_on_with_any_number(alone, tmp_path, caplog):
    folder, view = tmp_path / "run", KillAfter(3)
    with pytest.raises(LearnerLostError, match="learner 1 was ended by SIGKILL"):
        amago.train(tiny_run(**{"scale.learners": 2}), seed=1, run_dir=folder, view=view)
    assert view.killed == 1 and not list(other_ranks())
    assert f"the checkpoint of epoch 3 is kept; go on with: amago resume {folder}" in caplog.text
    result = amago.resume(folder, set={"scale.learners": 1}).result
    assert result["epochs"] == 4
    assert_close(folder, alone)


def test_a_run_of_one_learner_goes_on_with_two(alone, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        amago.train(tiny_run(), seed=1, run_dir=folder, view=StopAfter(2))
    amago.resume(folder, set={"scale.learners": 2})
    assert_close(folder, alone)
    assert {path.name for path in folder.iterdir()} == {path.name for path in alone.iterdir()}
    assert not list(other_ranks())


@pytest.mark.slow
def test_torchrun_starts_ranks_of_which_the_first_alone_writes_and_prints(alone, tmp_path):
    folder = tmp_path / "run"
    flags = [
        text
        for key, value in TINY.items()
        if value is not None
        for text in (
            f"--{key}",
            *(map(str, value) if isinstance(value, tuple) else [str(value)]),
        )
    ]
    flags += ["--replay.batch-rows", "None"]
    command = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "amago", "train"]
    done = subprocess.run(
        [sys.executable, *command, "t-maze", *flags, "--seed", "1", "--run-dir", str(folder)],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 4/4") == 1 and done.stdout.count("curves:") == 1
    assert_close(folder, alone)


def test_fewer_windows_than_learners_are_refused_before_anything_starts(tmp_path):
    config = tiny_run(**{"scale.learners": 2, "replay.batch_size": 1})
    with pytest.raises(ValueError, match=r"--replay.batch-size of at least 2 windows"):
        amago.train(config, run_dir=tmp_path / "run")
    assert not list(other_ranks())


def test_torchrun_and_the_settings_must_agree(tmp_path, monkeypatch):
    for name, value in {"RANK": 0, "WORLD_SIZE": 3, "MASTER_ADDR": "x", "MASTER_PORT": 1}.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(ValueError, match=r"expected --scale.learners 3 \(or none\) under torchrun"):
        amago.train(tiny_run(**{"scale.learners": 2}), run_dir=tmp_path / "run")


def test_what_goes_wrong_ahead_of_time_is_raised_where_it_is_used():
    def make():
        yield 1
        raise LearnerLostError("gone")

    items = _ahead(make)
    assert next(items) == 1
    with pytest.raises(LearnerLostError, match="gone"):
        next(items)
