"""A playground in a thread, for tests that visit it."""

from __future__ import annotations

import socket
import threading
import time

import uvicorn

from amago.play import messages
from amago.play.server import _Limits, _make_app
from amago.play.shelf import Shelf


class Server:
    """Serves on any free port until the block ends."""

    def __init__(self, shelf: Shelf, limits: _Limits | None = None) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        config = uvicorn.Config(
            _make_app(shelf, limits=limits), log_level="warning", ws_max_size=messages.MAX_BYTES
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    def __enter__(self) -> Server:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=20)
