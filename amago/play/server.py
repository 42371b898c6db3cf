"""The playground's web server: a few files, a list of agents, and a websocket per visitor.

A visitor's requests are answered in order, each with one reply (see rounds.py). No name from a
browser ever becomes a path.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from amago.play import messages
from amago.play.guard import Guard
from amago.play.rounds import Rounds
from amago.play.shelf import Shelf
from amago.play.visitor import Visitor

_IDLE, _FULL, _MISTAKES = 4000, 4001, 4002
"""Why a session was closed, as websocket codes."""
_STATIC = {
    "/": ("index.html", "text/html"),
    "/app.js": ("app.js", "text/javascript"),
    "/charts.js": ("charts.js", "text/javascript"),
    "/connection.js": ("connection.js", "text/javascript"),
    "/panels.js": ("panels.js", "text/javascript"),
    "/style.css": ("style.css", "text/css"),
}
"""Everything that is served from disk, read once."""


@dataclass(frozen=True)
class _Limits:
    """What visitors may use."""

    sessions: int = 64
    idle_seconds: float = 600.0
    mistakes: int = 20
    """Refused messages after which a session is closed."""


class _Playground:
    """Visitors of one server."""

    def __init__(self, shelf: Shelf, limits: _Limits) -> None:
        self.shelf, self.limits = shelf, limits
        self.visitors = 0
        self.rounds = Rounds()

    async def agents(self, _: Request) -> Response:
        return JSONResponse(self.shelf.describe())

    async def session(self, websocket: WebSocket) -> None:
        """A visitor from the first message to the last."""
        await websocket.accept()
        if self.visitors >= self.limits.sessions:
            await websocket.close(_FULL, f"all {self.limits.sessions} sessions are in use")
            return
        self.visitors += 1
        visitor = Visitor(self.shelf)
        try:
            await self._converse(websocket, visitor)
        except WebSocketDisconnect:
            pass
        finally:
            self.visitors -= 1
            await self.rounds.call(visitor.close)

    async def _converse(self, websocket: WebSocket, visitor: Visitor) -> None:
        mistakes = 0
        while mistakes < self.limits.mistakes:
            try:
                async with asyncio.timeout(self.limits.idle_seconds):
                    text = await _receive(websocket)
            except TimeoutError:
                await websocket.close(_IDLE, "nothing was asked for a while")
                return
            try:
                request = messages.read(text)
            except ValueError as error:
                mistakes += 1
                await websocket.send_text(json.dumps({"type": "refused", "message": str(error)}))
                continue
            reply = await self.rounds.answer(visitor, request)
            await websocket.send_text(json.dumps(reply, separators=(",", ":")))
        await websocket.close(_MISTAKES, "too many messages that are not understood")


async def _receive(websocket: WebSocket) -> str:
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    return message.get("text") or ""


def _make_app(shelf: Shelf, host: str = "127.0.0.1", limits: _Limits | None = None) -> Guard:
    """The whole application, behind its guard."""
    ground = _Playground(shelf, limits or _Limits())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await ground.rounds.call(
            shelf.load, shelf.default
        )  # the first visitor need not wait for it
        yield
        ground.rounds.close()

    routes: list[BaseRoute] = [Route(path, _static(*file)) for path, file in _STATIC.items()]
    routes += [Route("/agents", ground.agents), WebSocketRoute("/session", ground.session)]
    return Guard(Starlette(routes=routes, lifespan=lifespan), host)


def _static(name: str, media_type: str) -> Callable[[Request], Response]:
    content = (files("amago.play") / "static" / name).read_bytes()
    return lambda _: Response(content, media_type=media_type)


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 is any free one."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"cannot listen on {host} port {port} ({error}); choose another --port or --host"
        ) from error


def serve(shelf: Shelf, host: str, listening: socket.socket) -> None:
    """Serve until interrupted."""
    import uvicorn

    config = uvicorn.Config(
        _make_app(shelf, host),
        log_level="warning",
        ws_max_size=messages.MAX_BYTES,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run([listening])
