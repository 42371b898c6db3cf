"""A sweep's runs on other nodes: the folder goes there and comes back."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest

from amago.cli.placing import placed
from amago.scale import ray_cluster
from amago.scale.ray_job import _pack, _RunOnNode, _unpack, on_cluster
from amago.sweep.jobs import amago_command, plan

WRITES = "import os, pathlib, sys; p = pathlib.Path(sys.argv[1]); p.mkdir(exist_ok=True); \
(p / 'result.json').write_text('{}'); \
print('said', (p / 'old').exists(), 'sees', [*os.environ['CUDA_VISIBLE_DEVICES']])"


def test_a_run_on_a_node_writes_there_and_its_folder_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "seed-0"
    folder.mkdir()
    (folder / "old").write_text("")
    node = _RunOnNode(str(folder), ["python", "-c", WRITES, str(folder)], _pack(folder), 0)
    code, printed = None, b""
    while code is None:
        time.sleep(0.05)
        code, more, _ = node.look(len(printed), 0)
        printed += more
    assert (code, printed) == (0, b"said True sees []\n")
    assert not (folder / "result.json").exists(), "the node has a folder of its own"
    packed = node.packed()
    assert packed is not None
    _unpack(packed, folder)
    assert {path.name for path in folder.iterdir()} == {"old", "result.json"}


def test_the_command_of_a_job_is_wrapped_once() -> None:
    command = on_cluster("auto", ["python", "-m", "amago", "train"], Path("runs/a"))
    assert command[:5] == [sys.executable, "-m", "amago.scale.ray_job", "auto", "runs/a"]
    assert command[5:] == ["0", "python", "-m", "amago", "train"]


def test_on_a_cluster_a_run_on_a_gpu_asks_ray_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "Cluster", lambda *_: io.BytesIO())
    start = placed("auto", amago_command)
    for settings, gpus in (([], "0"), (["run.device=cpu"], "0"), (["run.device=cuda"], "1")):
        (job,) = plan(["wind"], [0], settings, tmp_path)
        assert start(job, "start")[5] == gpus
    with pytest.raises(ValueError, match=r"Ray hands them out: give --set run.device=cuda"):
        placed("auto", amago_command, ["0", "1"])


def test_without_an_address_a_sweep_stays_here() -> None:
    assert placed("", amago_command) is amago_command


def test_a_sweep_refuses_what_is_no_address() -> None:
    with pytest.raises(ValueError, match=r"--scale.address takes auto, local or HOST:PORT"):
        placed("nowhere", amago_command)
