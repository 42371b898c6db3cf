"""One run of a sweep on some node of a Ray cluster.

    python -m amago.scale.ray_job ADDRESS RUN_DIR GPUS COMMAND…

A process of the sweep's machine that stands for the run: it prints what the run prints, ends as
the run ends, and passes a SIGTERM on. The run has a folder on its node, because LMDB is not for
network file systems; the folder travels there when it begins and back when it ends.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amago.scale.ray_cluster import Cluster

_LOOK_SECONDS = 1.0
_MOST_NODES = 3
"""Nodes that may be lost under one run."""


class _RunOnNode:
    """A run as a child process of a Ray actor."""

    def __init__(
        self, run_dir: str, command: Sequence[str], packed: bytes | None, num_gpus: int
    ) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="amago-run-"))
        self._folder, self._log = self._home / Path(run_dir).name, self._home / "log"
        if packed is not None:
            _unpack(packed, self._folder)
        here = [str(self._folder) if part == run_dir else part for part in command[1:]]
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                [sys.executable, *here],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ray shows a run the GPU that it was given; one that was given none sees none.
                env={**os.environ, **({} if num_gpus else {"CUDA_VISIBLE_DEVICES": ""})},
                start_new_session=True,
            )

    def look(self, log: int, metrics: int) -> tuple[int | None, bytes, bytes]:
        """The exit code, and what was added to the log and the metrics from there on."""
        code = self._child.poll()
        return code, _rest(self._log, log), _rest(self._folder / "metrics.jsonl", metrics)

    def stop(self) -> None:
        self._child.terminate()

    def packed(self) -> bytes | None:
        """The run's folder, and nothing of it left here."""
        packed = _pack(self._folder) if self._folder.is_dir() else None
        shutil.rmtree(self._home)
        return packed


def _pack(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(folder, arcname=".")
    return buffer.getvalue()


def _unpack(packed: bytes, folder: Path) -> None:
    """Replace a folder by what was packed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(folder, filter="data")


def on_cluster(address: str, command: Sequence[str], run_dir: Path, num_gpus: int = 0) -> list[str]:
    """The command that runs another one somewhere on a cluster, with a core and so many GPUs."""
    here = [sys.executable, "-m", "amago.scale.ray_job", address, str(run_dir), str(num_gpus)]
    return [*here, *command]


def main(address: str, run_dir: str, num_gpus: str, *command: str) -> int:
    stops: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stops.append(number))
    cluster = Cluster(address, 1)
    try:
        for _ in range(_MOST_NODES):
            try:
                return _follow(cluster.ray, run_dir, command, stops, int(num_gpus))
            except cluster.ray.exceptions.RayActorError as error:
                print(f"the run's node was lost ({type(error).__name__}); it begins again")
        return 1
    finally:
        cluster.close()


def _follow(ray: Any, run_dir: str, command: Sequence[str], stops: list[int], num_gpus: int) -> int:
    folder = Path(run_dir)
    packed = _pack(folder) if (folder / "config.json").exists() else None
    options = {"num_cpus": 1, "num_gpus": num_gpus, "max_restarts": 0}
    remote = ray.remote(scheduling_strategy="SPREAD", **options)(_RunOnNode)
    actor = remote.remote(run_dir, list(command), packed, num_gpus)
    code, log, metrics = None, 0, 0
    while code is None:
        time.sleep(_LOOK_SECONDS)
        if stops:
            stops.clear()
            ray.get(actor.stop.remote())
        code, printed, rows = ray.get(actor.look.remote(log, metrics))
        os.write(sys.stdout.fileno(), printed)
        log, metrics = log + len(printed), metrics + len(rows)
        if packed is None:
            _show(folder, rows)
    packed = ray.get(actor.packed.remote())
    if packed is not None:
        _unpack(packed, folder)
    return int(code)


def _show(folder: Path, rows: bytes) -> None:
    """Let the sweep see how far the run is."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(rows)


def _rest(path: Path, offset: int) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
