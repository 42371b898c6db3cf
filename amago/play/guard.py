"""Refuses requests that another web site could have caused, and tells browsers to be strict."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

_Scope = MutableMapping[str, Any]
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Application = Callable[[_Scope, _Receive, _Send], Awaitable[None]]


class Guard:
    """An application that answers only for its own host and to its own pages.

    A host name in the address bar must be one that this server has: another name that resolves
    to this machine (DNS rebinding) is refused. A page of another origin may neither open a
    session nor read anything.
    """

    def __init__(self, app: _Application, host: str) -> None:
        self._app, self._host = app, host

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = {key.lower(): value.decode("latin-1") for key, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        refusal = None
        if not self._is_ours(host):
            refusal = f"this server is not called {host[:100]!r}"
        elif origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            refusal = "pages of other origins are refused"
        elif scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            refusal = "this server only answers GET"
        if refusal is None:
            await self._app(scope, receive, _with_headers(send, host))
        else:
            await _refuse(scope, receive, send, refusal)

    def _is_ours(self, host: str) -> bool:
        """An address cannot be rebound, so any address of this machine is fine."""
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if name in ("localhost", self._host):
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


async def _refuse(scope: _Scope, receive: _Receive, send: _Send, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": why})
        return
    body = why.encode()
    plain = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": plain})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: _Send, host: str) -> _Send:
    """Only our own files, no frames around us, nothing kept."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        f"connect-src 'self' ws://{host} wss://{host}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    extra = [
        (b"content-security-policy", policy.encode("latin-1")),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
        (b"cross-origin-resource-policy", b"same-origin"),
    ]

    async def sending(message: _Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return sending
