"""Many visitors at once: agents that think in one pass, and not a step that is lost."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from play_server import Server
from test_play_session import ROOM, WIND, untrained
from websockets.asyncio.client import connect

from amago.play import rounds
from amago.play.frames import encode
from amago.play.probe import think
from amago.play.rounds import Rounds
from amago.play.session import Session
from amago.play.shelf import Shelf
from amago.play.visitor import Visitor

BEGIN = {"type": "begin", "player": "agent", "instruction": "", "dark": False}
NUM_VISITORS, NUM_STEPS = 20, 12


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs")
    room = untrained(folder / "room", "dark-key-to-door", ROOM)
    short = untrained(folder / "short", "dark-key-to-door", {**ROOM, "replay.context_length": 8})
    road = untrained(folder / "road", "package-delivery", {"env.kwargs": {"horizon": 30}})
    wind = untrained(folder / "wind", "wind", WIND)
    gru = untrained(folder / "gru", "dark-key-to-door", {**ROOM, "memory": "gru"})
    return Shelf([str(path) for path in (room, short, road, wind, gru)])


@pytest.fixture(scope="module")
def server(shelf: Shelf) -> Iterator[Server]:
    with Server(shelf) as server:
        yield server


def sessions(shelf: Shelf) -> list[Session]:
    """Of five agents, at several ages, one of them with a wiped memory."""
    made = []
    for name in ("room", "short", "road", "wind", "gru"):
        for age in (0, 3, 8):
            session = Session(shelf.load(name), seed=age)
            for _ in range(age):
                session.step()
            made.append(session)
    made[2].wipe()
    return made


def test_agents_that_think_at_once_think_what_each_thinks_alone(shelf: Shelf) -> None:
    together, alone = sessions(shelf), sessions(shelf)
    for _ in range(3):
        answers = think([session.moment() for session in together])
        for session, other, answer in zip(together, alone, answers, strict=True):
            session.hear(answer)
            thought, expected = session.thought, other.thought
            assert thought is not None and expected is not None
            chosen = np.asarray(session.chosen, np.float64)
            np.testing.assert_allclose(chosen, np.asarray(other.chosen), atol=1e-5)
            for name in ("probabilities", "mean", "deviation", "values"):
                numbers = getattr(expected, name)
                assert getattr(thought, name) == (numbers and pytest.approx(numbers, abs=2e-4))
            if expected.attention is not None:
                torch.testing.assert_close(thought.attention, expected.attention)
            assert len(session.past) == len(other.past)
        for session in (*together, *alone):
            session.step()


async def visits(url: str, agents: Sequence[str], steps: int) -> list[list[dict[str, Any]]]:
    """What visitors are answered who all ask at once, each as fast as answers come."""

    async def visit(seed: int, agent: str) -> list[dict[str, Any]]:
        replies = []
        async with connect(url.replace("http", "ws") + "session", max_size=2**22) as socket:
            for request in [{**BEGIN, "agent": agent, "seed": seed}, *[{"type": "step"}] * steps]:
                await socket.send(json.dumps(request))
                replies.append(json.loads(await socket.recv()))
        return replies

    return await asyncio.gather(*(visit(seed, agent) for seed, agent in enumerate(agents)))


def test_twenty_visitors_at_once_lose_no_step_and_meet_nobody_elses_world(
    shelf: Shelf, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [("room", "short", "road", "gru")[n % 4] for n in range(NUM_VISITORS)]
    sizes: list[int] = []

    def counted(asked: Any, answer: Any = rounds._answer) -> Any:
        sizes.append(len(asked))
        return answer(asked)

    monkeypatch.setattr(rounds, "_answer", counted)
    replies = asyncio.run(visits(server.url, names, NUM_STEPS))
    assert len(sizes) < sum(sizes) == NUM_VISITORS * (NUM_STEPS + 1), "no round had two requests"
    for seed, (name, answers) in enumerate(zip(names, replies, strict=True)):
        assert [answer["type"] for answer in answers] == ["began", *["state"] * NUM_STEPS]
        states = [answers[0]["state"], *answers[1:]]
        alone = Session(shelf.load(name), seed)
        for time, state in enumerate(states):
            assert (state["time"], state["chosen"]) == (time, int(np.asarray(alone.chosen)[0]))
            assert state["total"] == pytest.approx(sum(alone.rewards), abs=1e-3)
            alone.step()


def test_steps_wait_for_one_slow_request_at_most(shelf: Shelf) -> None:
    order: list[str] = []
    free = threading.Event()

    class Slow(Visitor):
        def do(self, request: dict[str, Any]) -> None:
            free.wait(10)
            order.append(request["type"])

        def reply(self, request: dict[str, Any]) -> dict[str, Any]:
            return request

    async def ask() -> None:
        ground = Rounds()
        kinds = ["begin", "back", "step", "wipe", "step"]
        asked = [asyncio.create_task(ground.answer(Slow(shelf), {"type": k})) for k in kinds]
        await asyncio.sleep(0)  # all of them are waiting now
        asyncio.get_running_loop().call_later(0.2, free.set)
        await asyncio.gather(*asked, *[ground.answer(Slow(shelf), {"type": "step"})])
        ground.close()

    asyncio.run(ask())
    assert order == ["step", "step", "begin", "step", "back", "wipe"]


def test_a_world_that_fails_ends_the_visit_of_one_visitor_alone(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = Visitor(shelf), Visitor(shelf)
    for seed, visitor in enumerate((good, bad)):
        rounds._answer([(visitor, {**BEGIN, "agent": "room", "seed": seed})])
    assert bad._session is not None
    monkeypatch.setattr(bad._session.world, "step", lambda _: 1 / 0)
    reply, error = rounds._answer([(good, {"type": "step"}), (bad, {"type": "step"})])
    assert isinstance(reply, dict) and reply["time"] == 1
    assert isinstance(error, ZeroDivisionError)


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (224, 90)])
def test_drawings_are_stored_exactly(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 255, (*(-(-side // 16) for side in shape), 3), np.uint8)
    drawing = cells.repeat(16, axis=0).repeat(16, axis=1)[: shape[0], : shape[1]]
    stored = Image.open(io.BytesIO(encode(drawing)))
    assert stored.format == "PNG" and np.array_equal(np.asarray(stored), drawing)


def test_a_photograph_is_stored_as_one() -> None:
    rough = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    photograph = np.asarray(Image.fromarray(rough).resize((480, 320), Image.Resampling.BICUBIC))
    stored = encode(photograph)
    image = Image.open(io.BytesIO(stored))
    assert image.format == "JPEG" and len(stored) < photograph.size / 10
    assert np.abs(np.asarray(image).astype(int) - photograph).mean() < 6
