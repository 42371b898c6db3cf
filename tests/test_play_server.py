"""The playground's server without a browser: who is let in, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect
from test_play_session import ROOM, untrained
from test_run_helpers import command

from amago.play import messages
from amago.play.server import _FULL, _IDLE, _MISTAKES, _STATIC, _Limits, _make_app, listen
from amago.play.shelf import Shelf

HOME = "http://127.0.0.1:8000"
SESSION = "ws://127.0.0.1:8000/session"
BEGIN = {
    "type": "begin",
    "agent": "room",
    "seed": 3,
    "player": "agent",
    "instruction": "",
    "dark": False,
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("runs")
    road = untrained(folder / "road", "package-delivery", {"env.kwargs": {"horizon": 30}})
    return Shelf([str(untrained(folder / "room", "dark-key-to-door", ROOM)), str(road)])


@pytest.fixture
def client(shelf: Shelf) -> Iterator[TestClient]:
    with TestClient(_make_app(shelf), base_url=HOME) as client:
        yield client


def ask(socket: WebSocketTestSession, request: dict[str, Any] | str) -> dict[str, Any]:
    socket.send_text(request if isinstance(request, str) else json.dumps(request))
    reply: dict[str, Any] = socket.receive_json()
    return reply


def test_a_session_begins_and_steps(client: TestClient) -> None:
    with client.websocket_connect(SESSION) as socket:
        began = ask(socket, BEGIN)
        assert began["type"] == "began" and began["horizon"] == 40
        assert began["actions"] == ["left", "up", "right", "down", "stay"]
        assert len(began["oracle"]) == len(began["random"]) == 40
        assert sum(began["state"]["probabilities"]) == pytest.approx(1, abs=1e-3)
        state = ask(socket, {"type": "step"})
        assert state["time"] == 1 and len(state["attention"]) == 2 and state["frame"]
        assert sum(state["attention"]) == pytest.approx(1, abs=1e-3)
        row = ask(socket, {"type": "look", "index": 0})
        assert (row["type"], row["time"], row["own"]) == ("row", 0, True)
        assert ask(socket, {"type": "back"})["time"] == 0


def test_visitors_have_sessions_of_their_own(client: TestClient) -> None:
    with client.websocket_connect(SESSION) as one, client.websocket_connect(SESSION) as two:
        ask(one, BEGIN)
        ask(two, {**BEGIN, "seed": 4})
        for _ in range(5):
            ask(one, {"type": "step"})
        assert ask(two, {"type": "step"})["time"] == 1
        ask(two, {"type": "wipe"})
        assert len(ask(one, {"type": "step"})["attention"]) == 7


def test_the_agents_curve_stays_beside_yours_in_the_same_world(client: TestClient) -> None:
    with client.websocket_connect(SESSION) as socket:
        ask(socket, BEGIN)
        for _ in range(3):
            last = ask(socket, {"type": "step"})
        began = ask(socket, {**BEGIN, "player": "you"})
        assert len(began["returns"]["agent"]) == 3
        assert began["returns"]["agent"][-1] == last["total"]
        ask(socket, {"type": "move", "move": 4})
        elsewhere = ask(socket, {**BEGIN, "seed": 5})
        assert elsewhere["returns"] == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[]",
        "null",
        '{"type": "destroy"}',
        '{"type": ["step"]}',
        '{"type": "step", "more": 1}',
        '{"type": "look"}',
        '{"type": "look", "index": true}',
        '{"type": "look", "index": -1}',
        '{"type": "look", "index": 1e3}',
        '{"type": "move", "move": "0"}',
        json.dumps({**BEGIN, "seed": 2**31}),
        json.dumps({**BEGIN, "seed": -1}),
        json.dumps({**BEGIN, "player": "root"}),
        json.dumps({**BEGIN, "agent": "x" * 301}),
        json.dumps({**BEGIN, "agent": "a\nb"}),
        json.dumps({**BEGIN, "dark": 1}),
        "[" * 3000,
        "x" * (messages.MAX_BYTES + 1),
    ],
)
def test_malformed_messages_are_refused_and_the_session_goes_on(
    client: TestClient, text: str
) -> None:
    with client.websocket_connect(SESSION) as socket:
        ask(socket, BEGIN)
        assert ask(socket, text)["type"] == "refused"
        socket.send_bytes(b"\x00\x01")
        assert socket.receive_json()["type"] == "refused"
        assert ask(socket, {"type": "step"})["time"] == 1


def test_what_cannot_be_done_is_answered_with_the_reason(client: TestClient) -> None:
    with client.websocket_connect(SESSION) as socket:
        assert "begin" in ask(socket, {"type": "step"})["message"]
        ask(socket, BEGIN)
        for request, part in (
            ({"type": "back"}, "nothing before"),
            ({"type": "look", "index": 9}, "memory holds 1 rows"),
            ({"type": "head", "layer": 7, "head": 0}, "no head"),
            ({"type": "parse", "text": "eat cow"}, "follows no instructions"),
            ({"type": "move", "move": 0}, "the agent plays"),
        ):
            reply = ask(socket, request)
            assert reply["type"] == "error" and part in reply["message"], reply


def test_an_instruction_is_parsed_or_answered_with_the_parsers_message(client: TestClient) -> None:
    with client.websocket_connect(SESSION) as socket:
        began = ask(socket, {**BEGIN, "agent": "road"})
        assert began["goals"] and began["state"]["asked"]
        parsed = ask(socket, {"type": "parse", "text": "3, 7 x2"})
        assert parsed["goals"] == ["3", "7", "7"] and parsed["message"] == ""
        nonsense = ask(socket, {"type": "parse", "text": "eat cow"})
        assert nonsense["goals"] == [] and "'eat'" in nonsense["message"]
        refused = ask(socket, {**BEGIN, "agent": "road", "instruction": "nonsense"})
        assert refused["type"] == "error" and "nonsense" in refused["message"]
        assert ask(socket, {"type": "step"})["time"] == 1  # the session before goes on


@pytest.mark.parametrize("agent", ["/etc/passwd", "../room", "zoo:dark-key-to-door", "runs/x", ""])
def test_no_agent_outside_the_shelf_is_reached(client: TestClient, agent: str) -> None:
    with client.websocket_connect(SESSION) as socket:
        reply = ask(socket, {**BEGIN, "agent": agent})
        assert reply["type"] == "error" and "no agent is called" in reply["message"]


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/static/app.js", "/%2e%2e/shelf.py", "//etc/passwd", "/agents/x"],
)
def test_no_path_reaches_the_file_system(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_foreign_origins_are_refused(client: TestClient) -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1"):
        headers = {"origin": origin}
        assert client.get("/agents", headers=headers).status_code == 403
        assert client.post("/agents", headers=headers).status_code == 403
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect(SESSION, headers=headers),
        ):
            pass
    own = {"origin": HOME}
    assert client.get("/agents", headers=own).status_code == 200
    with client.websocket_connect(SESSION, headers=own) as socket:
        assert ask(socket, BEGIN)["type"] == "began"


def test_foreign_hosts_are_refused(client: TestClient) -> None:
    for host in ("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.io"):
        assert client.get("/", headers={"host": host}).status_code == 403
    for host in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000", "192.168.0.7:8000"):
        assert client.get("/", headers={"host": host}).status_code == 200


def test_nothing_can_be_posted(client: TestClient) -> None:
    assert client.post("/agents").status_code == 403
    assert client.put("/").status_code == 403


def test_browsers_are_told_to_load_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    for path in _STATIC:
        text = client.get(path).text
        assert "http://" not in text and "https://" not in text.replace('"https:"', "")


def test_an_idle_session_ends(shelf: Shelf) -> None:
    app = _make_app(shelf, limits=_Limits(idle_seconds=0.2))
    with (
        TestClient(app, base_url=HOME) as client,
        client.websocket_connect(SESSION) as socket,
    ):
        ask(socket, BEGIN)
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_text()
        assert closed.value.code == _IDLE


def test_a_full_server_says_so_and_has_room_again_later(shelf: Shelf) -> None:
    app = _make_app(shelf, limits=_Limits(sessions=1))
    with TestClient(app, base_url=HOME) as client:
        with client.websocket_connect(SESSION) as first:
            ask(first, BEGIN)
            with (
                client.websocket_connect(SESSION) as second,
                pytest.raises(WebSocketDisconnect) as closed,
            ):
                second.receive_text()
            assert closed.value.code == _FULL
        with client.websocket_connect(SESSION) as third:
            assert ask(third, BEGIN)["type"] == "began"


def test_who_sends_nothing_but_nonsense_is_sent_away(shelf: Shelf) -> None:
    app = _make_app(shelf, limits=_Limits(mistakes=3))
    with (
        TestClient(app, base_url=HOME) as client,
        client.websocket_connect(SESSION) as socket,
    ):
        for _ in range(3):
            assert ask(socket, "?")["type"] == "refused"
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_text()
        assert closed.value.code == _MISTAKES


def test_a_port_in_use_is_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        code, _, err = command(capsys, "play", "--port", port)
    assert code == 2 and f"cannot listen on 127.0.0.1 port {port}" in err
    code, _, err = command(capsys, "play", "--port", 99_999)
    assert code == 2 and "choose another --port" in err
