"""Synchronous collecting by other processes changes nothing but the clock."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_collect_helpers import contents, rows, tiny, trained

from amago import api
from amago.cli.train import _scale_as_set
from amago.config import Config, override
from amago.envs.elsewhere import LanesElsewhere
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings

pytestmark = pytest.mark.usefixtures("quick_collectors", "no_curves")


def test_one_collector_gives_the_trajectories_weights_and_metrics_of_a_local_run(
    tmp_path: Path,
) -> None:
    local = contents(trained(tmp_path / "local", tiny()))
    scaled = contents(trained(tmp_path / "scaled", tiny(scale__collectors=1)))
    assert len(local["trajectories"]) == 12
    assert scaled == local


def test_two_collectors_resumed_after_an_epoch_equal_two_that_never_stopped(tmp_path: Path) -> None:
    # A fixed schedule of noise: the usual one depends on the number of epochs.
    config = tiny(scale__collectors=2, exploration__anneal_steps=50)
    whole = contents(trained(tmp_path / "whole", config))
    trained(tmp_path / "parts", override(config, {"run.epochs": 1}))
    api.resume(tmp_path / "parts", epochs=3)
    parts = contents(tmp_path / "parts")
    assert parts["trajectories"] == whole["trajectories"]
    assert parts["weights"] == whole["weights"]
    assert len(set(whole["trajectories"])) == 12, (
        "lanes of both collectors play worlds of their own"
    )
    timing = rows(tmp_path / "whole" / "timing.jsonl")[-1]
    assert timing["collectors"] == 2 and timing["lag_max"] == 0


@pytest.mark.parametrize("ids", [(), ("amago/TMaze-v0?corridor=9", "amago/TMaze-v0?corridor=14")])
def test_lanes_elsewhere_describe_themselves_like_lanes_that_are_here(ids: tuple[str, ...]) -> None:
    settings = EnvSettings(id="amago/TMaze-v0", ids=ids)
    here = make_vector(settings, seed=1, num_lanes=5)
    there = LanesElsewhere(settings, seed=1, num_lanes=5)
    assert (there.spec, there.tasks, there.horizons) == (here.spec, here.tasks, here.horizons)
    assert there.curriculum == here.curriculum


def test_some_lanes_of_many_play_the_worlds_that_they_have_among_all() -> None:
    settings = EnvSettings(id="amago/DarkKeyToDoor-v0")
    whole = make_vector(settings, seed=1, num_lanes=5).reset()
    part = make_vector(settings, seed=1, num_lanes=5, lanes=range(2, 4)).reset()
    np.testing.assert_array_equal(part.world_seed, whole.world_seed[2:4])


def test_more_collectors_than_lanes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"--scale.collectors 25 .* raise --env.num-lanes"):
        override(Config(), {"scale.collectors": 25})


def test_async_without_collectors_is_refused() -> None:
    with pytest.raises(ValueError, match=r"--scale.mode async .* --scale.collectors 1"):
        override(Config(), {"scale.mode": "async"})


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"--scale.address takes auto, local or HOST:PORT"):
        override(Config(), {"scale.address": "somewhere"})


def test_a_folder_alone_connects_to_no_cluster_elsewhere(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run", tiny())
    header = json.loads((folder / "config.json").read_text())
    header["config"]["scale"] |= {"collectors": 1, "address": "10.0.0.1:6379"}
    (folder / "config.json").write_text(json.dumps(header))
    with pytest.raises(ValueError, match=r"names the Ray cluster 10.0.0.1:6379.*--scale.address"):
        api.resume(folder, epochs=4)


def test_resume_takes_the_flags_of_scale_as_train_does() -> None:
    arguments = ["run", "--scale.collectors", "4", "--scale.mode=async", "--trust"]
    found = ["run", "--set", "scale.collectors=4", "--set", "scale.mode=async", "--trust"]
    assert _scale_as_set(arguments) == found
