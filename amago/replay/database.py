"""The LMDB database of a trajectory store: opened, checked, read in transactions, closed.

Any number of processes read it at the same time, each through a handle of its own.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import lmdb

from amago.goals import GoalSpec
from amago.replay.format import check_version, goals_in, obs_of
from amago.replay.pages import check_pages

_INITIAL_MAP_BYTES = 64 << 20
_MAX_READERS = 1024


class Database:
    """An open database, with what it says about its own spaces and goals."""

    _path: Path
    _env: lmdb.Environment
    _map_lock: threading.Lock
    _pid: int
    _closed: bool
    _goals: GoalSpec | None = None
    _obs: dict[str, tuple[str, tuple[int, ...]]]

    def close(self) -> None:
        """Let go of the files; a second call does nothing."""
        # LMDB forbids a forked child to close what its parent opened.
        if not self._closed and self._pid == os.getpid():
            with self._map_lock:
                self._env.close()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _attach(self, readonly: bool) -> None:
        data = self._path / "data.mdb"
        size = data.stat().st_size if data.exists() else 0
        check_pages(data)
        self._pid = os.getpid()
        self._closed = False
        self._obs = {}
        # LMDB remaps memory only while this process has no transaction open.
        self._map_lock = threading.Lock()
        try:
            self._env = lmdb.open(
                str(self._path),
                map_size=max(_INITIAL_MAP_BYTES, size),
                max_dbs=8,
                max_readers=_MAX_READERS,
                readonly=readonly,
                metasync=False,
                mode=0o666,  # less what the umask takes
            )
        except lmdb.Error as error:
            raise ValueError(
                f"expected a replay store at {self._path}, got: {error} If this process, or the "
                "one it was forked from, has it open, use that handle or spawn the process; "
                "otherwise choose another path"
            ) from error
        try:
            # Slots of killed readers would keep evicted pages from being used again.
            self._env.reader_check()
            self._meta, self._records, self._steps = (
                self._env.open_db(name, create=not readonly)
                for name in (b"meta", b"trajectories", b"steps")
            )
            with self._reading() as txn, written_by_amago(self._path):
                version = txn.get(b"format", db=self._meta)
                spaces = txn.get(b"spaces", db=self._meta)
                if version is not None:
                    check_version(self._path, int(bytes(version)))
                if spaces is not None:
                    self._goals = goals_in(bytes(spaces).decode())
                    self._obs = obs_of(bytes(spaces).decode())
            if self._goals is not None:
                self._goal_records = self._env.open_db(b"goals", create=not readonly)
        except lmdb.NotFoundError as error:
            self.close()
            raise ValueError(
                f"expected a replay store at {self._path}, got another or an unfinished LMDB "
                "database; check the path, or wait until the writer has opened it"
            ) from error
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _reading(self) -> Iterator[lmdb.Transaction[memoryview]]:
        self._check_usable()
        with self._map_lock:
            try:
                txn = self._env.begin(buffers=True)
            except lmdb.MapResizedError:  # the writer, in another process, grew the map
                self._env.set_mapsize(0)
                txn = self._env.begin(buffers=True)
            with txn:
                yield txn

    def _check_usable(self) -> None:
        if self._pid != os.getpid():
            raise RuntimeError(
                f"the replay store {self._path} was opened by process {self._pid} and cannot be "
                "used across fork; start this process with the spawn method, and call "
                "TrajectoryStore.open_readonly in it"
            )
        if self._closed:
            raise RuntimeError(f"the replay store {self._path} is closed; open it again")


@contextmanager
def written_by_amago(path: Path) -> Iterator[None]:
    """Whatever a store says of itself that amago would never write is one clear error."""
    try:
        yield
    except (
        struct.error, TypeError, KeyError, AttributeError, RecursionError, ValueError,
    ) as error:  # fmt: skip
        if str(path) in str(error):
            raise
        raise ValueError(
            f"the replay store {path} is damaged or was not written by amago ({error}); restore "
            "it from a copy"
        ) from error
