"""Workers fail loudly and close quickly."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from counting_env import CountingEnv

from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.vector import InProcessVector, WorkerVector


class Troubled(CountingEnv):
    """Action 1 raises, 2 kills the process, 3 never returns."""

    def step(self, action: Any) -> Any:
        if action == 4:
            raise KeyError("the dog ate it")
        if action == 5:
            os._exit(7)
        if action == 6:
            time.sleep(1000)
        return super().step(action)


def troubled(first_lane: int, num_lanes: int) -> InProcessVector:
    return InProcessVector(Troubled, num_lanes, 0, first_lane=first_lane)


def refuses_to_start(first_lane: int, num_lanes: int) -> InProcessVector:
    raise ValueError(f"no lane {first_lane}")


def test_an_exception_in_a_worker_is_raised_here_with_its_traceback_and_ends_all_workers():
    vector = WorkerVector(troubled, 4, 2)
    vector.reset()
    with pytest.raises(RuntimeError, match=r"worker 1 \(lanes 2..3\)[\s\S]*the dog ate it"):
        vector.step(np.array([0, 0, 1, 0]))
    assert not multiprocessing.active_children()
    with pytest.raises(RuntimeError, match="closed"):
        vector.reset()
    vector.close()


def test_a_worker_that_dies_is_reported_with_its_exit_code():
    vector = WorkerVector(troubled, 2, 2)
    vector.reset()
    with pytest.raises(RuntimeError, match=r"worker 0 \(lanes 0..0\) died with exit code 7"):
        vector.step(np.array([2, 0]))


def test_a_worker_that_cannot_start_says_why():
    with pytest.raises(RuntimeError, match="no lane 0"):
        WorkerVector(refuses_to_start, 2, 2)
    assert not multiprocessing.active_children()


def test_close_ends_a_worker_that_never_answers():
    vector = WorkerVector(troubled, 2, 1)
    vector.reset()
    vector._pipes[0].send(("step", (np.array([3, 3]),)))
    begin = time.perf_counter()
    vector.close()
    vector.close()
    assert time.perf_counter() - begin < 6
    assert not multiprocessing.active_children()


def test_fork_is_refused():
    with pytest.raises(ValueError, match="forkserver"):
        WorkerVector(troubled, 2, 1, context="fork")


def test_workers_give_the_data_of_a_single_process_and_render():
    actions = np.random.default_rng(0).integers(0, 5, (30, 4))
    vectors = [
        make_vector(
            EnvSettings(
                id="amago/DarkKeyToDoor-v0", kwargs={"horizon": 12}, num_workers=num_workers
            ),
            seed=5,
            num_lanes=4,
        )
        for num_workers in (0, 3)
    ]
    a, b = (vector.reset() for vector in vectors)
    assert np.array_equal(a.obs["observation"], b.obs["observation"])
    for row in actions:
        one, many = (vector.step(row) for vector in vectors)
        assert np.array_equal(one.rows.obs["observation"], many.rows.obs["observation"])
        assert np.array_equal(one.rows.world_seed, many.rows.world_seed)
        assert np.array_equal(one.final_lanes, many.final_lanes)
    frames = [vector.render() for vector in vectors]
    assert np.array_equal(*frames)
    assert vectors[0].spec == vectors[1].spec and vectors[0].tasks == vectors[1].tasks
    for vector in vectors:
        vector.close()


def test_a_function_without_a_module_can_be_sent_to_workers():
    vector = make_vector(
        EnvSettings(num_workers=1), seed=0, num_lanes=1, make_env=lambda: CountingEnv(0)
    )
    assert vector.reset().obs["observation"].tolist() == [[0.0, 0.0, 0.0]]
    vector.close()


def test_environments_import_no_torch():
    code = "import sys, amago.envs.registry, amago.envs.vector; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
