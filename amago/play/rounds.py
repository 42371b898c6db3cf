"""Requests of all visitors, answered in rounds: agents that are asked at once think in one pass.

All agents act in one thread, which is not the thread that talks to browsers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from amago.play.probe import think
from amago.play.visitor import Reply, Visitor

_SLOW = ("begin", "back", "wipe", "change", "transplant")
"""Requests that play a rollout, or much of one; steps of others do not wait for more than one."""

_Asked = tuple[Visitor, dict[str, Any]]


class Rounds:
    """Collects what is asked while a round is under way, and answers it in the next."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "agents")
        self._quick: list[tuple[_Asked, asyncio.Future[Reply]]] = []
        self._slow: list[tuple[_Asked, asyncio.Future[Reply]]] = []
        self._work: asyncio.Task[None] | None = None

    async def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do something in the agents' thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def answer(self, visitor: Visitor, request: dict[str, Any]) -> Reply:
        """The reply to a checked request."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        waiting = self._slow if request["type"] in _SLOW else self._quick
        waiting.append(((visitor, request), future))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        return await future

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    async def _answer_all(self) -> None:
        while self._quick or self._slow:
            quick, self._quick = self._quick, []
            await self._round(quick)
            await self._round([self._slow.pop(0)] if self._slow else [])

    async def _round(self, asked: list[tuple[_Asked, asyncio.Future[Reply]]]) -> None:
        if not asked:
            return
        try:
            replies = await self.call(_answer, [one for one, _ in asked])
        except BaseException as error:
            replies = [error] * len(asked)
        for (_, future), reply in zip(asked, replies, strict=True):
            if future.done():
                continue  # the visitor has gone
            if isinstance(reply, BaseException):
                future.set_exception(reply)
            else:
                future.set_result(reply)


def _answer(asked: Sequence[_Asked]) -> list[Reply | Exception]:
    """What each visitor is told; an exception is of one visitor alone."""
    failed = [_attempt(visitor.do, request) for visitor, request in asked]
    waiting = [visitor.waiting for visitor, _ in asked]
    sessions = [one for one, error in zip(waiting, failed, strict=True) if one and not error]
    for session, answer in zip(sessions, think([one.moment() for one in sessions]), strict=True):
        session.hear(answer)
    return [
        error or _attempt(visitor.reply, request)
        for (visitor, request), error in zip(asked, failed, strict=True)
    ]


def _attempt(work: Callable[[dict[str, Any]], Any], request: dict[str, Any]) -> Any:
    """What `work` returns. A request that cannot be met is answered with the reason; the session
    goes on."""
    try:
        return work(request)
    except ValueError as error:
        return {"type": "error", "request": request["type"], "message": str(error)}
    except Exception as error:
        return error
