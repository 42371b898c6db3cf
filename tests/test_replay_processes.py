"""The store among processes: killed writers, concurrent readers, forks, second writers."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_replay_helpers import COUNTING_SPEC, counting_trajectory, same

import amago
from amago.replay.guard import check_place
from amago.replay.store import TrajectoryStore
from amago.types import Trajectory

ROOT = Path(amago.__file__).parents[1]


def run_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def episodes(start: int, stop: int, num_steps: int = 50) -> list[Trajectory]:
    return [counting_trajectory(0, episode, num_steps) for episode in range(start, stop)]


APPEND_FOREVER = """
import sys
from test_replay_helpers import COUNTING_SPEC, counting_trajectory
from amago.replay.store import TrajectoryStore
store = TrajectoryStore(sys.argv[1], COUNTING_SPEC, 50)
for episode in range(0, 10**6, 3):
    store.append([counting_trajectory(0, episode + n, 50) for n in range(3)])
    store.evict()
    print(episode + 3, flush=True)
"""


def test_a_kill_in_the_middle_of_appends_loses_nothing_committed(tmp_path: Path) -> None:
    for delay in (5, 60):
        writer = run_python(APPEND_FOREVER, tmp_path / str(delay))
        assert writer.stdout is not None
        for _ in range(delay):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in writer.stdout.read().split() if line][-1:]
        writer.wait()
        with TrajectoryStore(tmp_path / str(delay), COUNTING_SPEC, 50) as store:
            _, hi = store.window
            assert hi >= max(acknowledged, default=3 * delay) and hi % 3 == 0
            assert len(store) == min(hi, 50)
            for trajectory_id in store.ids.tolist():
                expected = counting_trajectory(0, trajectory_id, 50)
                assert same(store.read(trajectory_id), expected)
            store.append(episodes(hi, hi + 1))


IMPORT_AND_DIE = """
import os, signal, sys
from test_replay_helpers import COUNTING_SPEC, counting_trajectory
from amago.replay import store as module
module._COMMIT = 2
def demonstrations():
    for episode in range(7):
        yield counting_trajectory(9, episode, 4)
    os.kill(os.getpid(), signal.SIGKILL)
store = module.TrajectoryStore(sys.argv[1], COUNTING_SPEC, 50)
store.append_protected([counting_trajectory(8, 0, 4)])
store.append_protected(demonstrations())
"""


def test_a_kill_in_the_middle_of_protected_ones_leaves_none_of_them(tmp_path: Path) -> None:
    writer = run_python(IMPORT_AND_DIE, tmp_path)
    assert writer.wait() == -signal.SIGKILL
    with TrajectoryStore.open_readonly(tmp_path) as reader:
        assert len(reader.lengths) == 7 and reader.ids.tolist() == [-1]
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 50) as store:
        assert list(store.lengths) == store.ids.tolist() == [-1]
        store.append_protected(counting_trajectory(9, episode, 4) for episode in range(3))
        assert store.ids.tolist() == [-1, -2, -3, -4]
        assert same(store.read(-4), counting_trajectory(9, 2, 4))


READ_UNTIL = """
import sys
from test_replay_helpers import counting_trajectory, same
from amago.replay.store import TrajectoryStore
reader = TrajectoryStore.open_readonly(sys.argv[1])
print("ready", flush=True)
reads = 0
while reader.window[1] < int(sys.argv[2]):
    reader.refresh()
    for i in reader.ids.tolist()[-5:]:
        try:
            trajectory = reader.read(i)
        except ValueError as error:
            assert "evicted" in str(error), error
            continue
        assert same(trajectory, counting_trajectory(0, i, 50)), i
        reads += 1
print(reads, flush=True)
"""


def test_readers_in_other_processes_see_whole_trajectories_while_the_map_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amago.replay.database._INITIAL_MAP_BYTES", 1 << 18)
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 300) as store:
        store.append(episodes(0, 1))
        # These readers begin with a map that is smaller than what the writer will fill.
        code = READ_UNTIL.replace(
            "reader =",
            "from amago.replay import database as module\n"
            "module._INITIAL_MAP_BYTES = 1 << 18\nreader =",
            1,
        )
        readers = [run_python(code, tmp_path, 601) for _ in range(2)]
        for reader in readers:
            assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
        for episode in range(1, 601, 4):
            store.append(episodes(episode, episode + 4))
            store.evict()
        assert (tmp_path / "data.mdb").stat().st_size > 1 << 18
        for reader in readers:
            output, _ = reader.communicate(timeout=60)
            assert reader.returncode == 0 and int(output) > 5


HOLD_A_TRANSACTION = """
import sys
from amago.replay.store import TrajectoryStore
reader = TrajectoryStore.open_readonly(sys.argv[1])
with reader._reading():
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_opening_clears_the_slots_of_killed_readers(tmp_path: Path) -> None:
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 5) as store:
        store.append(episodes(0, 1))
        reader = run_python(HOLD_A_TRANSACTION, tmp_path)
        assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
        assert str(reader.pid) in store._env.readers()
        # Another reader keeps the lock file in use, so that opening does not reset it.
        other = run_python(HOLD_A_TRANSACTION, tmp_path)
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        reader.kill()
        reader.wait()
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 5) as store:
        slots = store._env.readers()
        assert str(reader.pid) not in slots and str(other.pid) in slots
    other.kill()
    other.wait()


def test_a_second_writer_is_refused_in_this_process_and_in_another(tmp_path: Path) -> None:
    other = run_python(APPEND_FOREVER, tmp_path / "other")
    assert other.stdout is not None and other.stdout.readline()
    with pytest.raises(ValueError, match=f"only writer.*process {other.pid} has it open"):
        TrajectoryStore(tmp_path / "other", COUNTING_SPEC, 50)
    other.kill()
    other.wait()
    TrajectoryStore(tmp_path / "other", COUNTING_SPEC, 50).close()

    with TrajectoryStore(tmp_path, COUNTING_SPEC, 5) as store:
        with pytest.raises(ValueError, match="this process has it open"):
            TrajectoryStore(tmp_path, COUNTING_SPEC, 5)
        late = run_python(
            APPEND_FOREVER.replace("store =", "sys.stderr = sys.stdout\nstore =", 1), tmp_path
        )
        assert "only writer" in late.communicate(timeout=60)[0]
        store.append(episodes(0, 1))


def _use_in_child(store: TrajectoryStore, results: multiprocessing.SimpleQueue[str]) -> None:
    for use in (lambda: store.read(0), lambda: store.append(episodes(1, 2))):
        try:
            use()
        except RuntimeError as error:
            results.put(str(error))
    store.close()
    try:
        TrajectoryStore.open_readonly(store._path)
    except ValueError as error:
        results.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_a_clear_error_and_does_the_parent_no_harm(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 5) as store:
        store.append(episodes(0, 1))
        results = context.SimpleQueue()
        child = context.Process(target=_use_in_child, args=(store, results))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        for _ in range(2):
            assert "across fork; start this process with the spawn method" in results.get()
        assert "already open" in (refusal := results.get()) and "spawn" in refusal
        store.append(episodes(1, 2))
        assert same(store.read(1), counting_trajectory(0, 1, 50))
        late = run_python(
            APPEND_FOREVER.replace("store =", "sys.stderr = sys.stdout\nstore =", 1), tmp_path
        )
        assert "only writer" in late.communicate(timeout=60)[0], "the child released the lock"


def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path}/net nfs4 rw 0 0\n"
        f"ssh {tmp_path}/a\\040b fuse.sshfs rw 0 0\ntmpfs {tmp_path}/net/local tmpfs rw 0 0\n"
    )
    for name in ("net/deep", "a b", "net/local"):
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(ValueError, match=r"local disk.*got nfs4"):
        check_place(tmp_path / "net" / "deep" / "store", mounts)
    with pytest.raises(ValueError, match=r"got fuse\.sshfs"):
        check_place(tmp_path / "a b", mounts)
    check_place(tmp_path / "net" / "local" / "store", mounts)
    check_place(tmp_path / "store", mounts)
    check_place(tmp_path / "store", tmp_path / "no such file")
