"""A visitor's session without a browser: what it shows, undoes and experiments with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_run_helpers import tiny

from amago.envs.catalogue import preset
from amago.envs.settings import EnvSettings
from amago.envs.tasks import draw
from amago.nets.memory.diagnose import diagnose
from amago.play import rounds, world
from amago.play.frames import FrameStore
from amago.play.probe import Moment, think
from amago.play.session import _MAX_EXPERIMENTS, Row, Session
from amago.play.shelf import Loaded, Shelf
from amago.play.visitor import Visitor
from amago.play.world import World
from amago.rollout.random_policy import RandomPolicy
from amago.training.start import create

WIND = {"env.kwargs": {"horizon": 12}}
ROOM = {"env.kwargs": {"grid": 4, "trial_limit": 9, "horizon": 40}}
# The first row that is kept would need the one before it, which a whole pass of eight lacks.
SHORT_MEMORY = {**ROOM, "replay.context_length": 8, "transformer.previous_row": False}


def untrained(folder: Path, preset: str, overrides: dict[str, Any]) -> Path:
    """A run folder with a checkpoint of the first moment."""
    run = create(folder, tiny(preset, overrides), 0, preset=preset)
    run.save()
    run.close()
    return folder


def numbers(row: Row) -> list[float]:
    """The observation of a row, which has one array here."""
    return next(iter(row.obs.values()))


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("runs")
    room = untrained(folder / "room", "dark-key-to-door", ROOM)
    short = untrained(folder / "short", "dark-key-to-door", SHORT_MEMORY)
    wind = untrained(folder / "wind", "wind", WIND)
    road = untrained(folder / "road", "package-delivery", {"env.kwargs": {"horizon": 30}})
    gru = untrained(folder / "gru", "dark-key-to-door", {**ROOM, "memory": "gru"})
    return Shelf([str(path) for path in (room, short, wind, road, gru)])


@pytest.fixture(scope="module")
def room(shelf: Shelf) -> Loaded:
    return shelf.load("room")


def played(loaded: Loaded, steps: int, seed: int = 3, **options: Any) -> Session:
    session = Session(loaded, seed, **options)
    for _ in range(steps):
        session.step()
    return session


def ask(visitor: Visitor, request: dict[str, Any]) -> dict[str, Any]:
    """A request of a visitor who is alone."""
    (reply,) = rounds._answer([(visitor, request)])
    assert isinstance(reply, dict)
    return reply


def mind_of(session: Session) -> tuple[Any, ...]:
    """Everything that the agent thinks now."""
    thought = session.thought
    assert thought is not None
    attention = None if thought.attention is None else thought.attention.tolist()
    return thought.probabilities, thought.values, attention, np.asarray(session.chosen).tolist()


def test_listening_does_not_change_what_the_agent_does(room: Loaded) -> None:
    session, actions = played(room, 0), []
    mind, world = room.mind(), Session(room, 3).world
    row, memory = world.begin(), mind.empty_memory()
    for time in range(20):
        actions.append(int(np.asarray(session.chosen)[0]))
        seed = int(np.random.SeedSequence((3, time)).generate_state(1)[0])
        action, memory = mind.act(row, memory, seed)
        assert int(action[0]) == actions[-1]
        row = world.step(action)
        session.step()
        assert float(row.prev_reward[0]) == session.rewards[-1]


@pytest.mark.parametrize("name", ["room", "short"])
def test_attention_from_the_acting_cache_is_that_of_a_whole_pass(shelf: Shelf, name: str) -> None:
    """Of one layer, so that a memory which forgets sees exactly its last rows."""
    loaded = shelf.load(name)
    encoded: list[torch.Tensor] = []
    hook = loaded.agent.encoder.register_forward_hook(lambda *call: encoded.append(call[2]))
    try:
        session = played(loaded, 25)
        rows = len(session.past)
    finally:
        hook.remove()
    assert rows == (26 if name == "room" else 8)
    times = torch.tensor([row.time for row in session.past])
    layers = diagnose(loaded.agent.memory, torch.cat(encoded)[-rows:], times)  # type: ignore[arg-type]
    assert session.thought is not None and session.thought.attention is not None
    torch.testing.assert_close(session.thought.attention[0], layers[0].weights[:, -1])


def test_values_are_in_rewards_as_the_environment_pays_them(room: Loaded) -> None:
    session = played(room, 5)
    assert session.thought is not None and session.thought.values is not None
    assert len(session.thought.values) == len(room.agent.discounts)
    mind = room.mind()
    mind.reward_scale = 2 * room.config.agent.reward_scale
    row = session.world.begin()
    moments = [Moment(one, row, one.empty_memory(), 0) for one in (mind, room.mind())]
    other, ours = (think([moment])[0][2] for moment in moments)
    assert other.values == pytest.approx([value / 2 for value in ours.values or []], abs=2e-4)


def test_back_and_on_again_is_the_same_rollout(room: Loaded) -> None:
    session = played(room, 12)
    before, rewards, row = mind_of(session), list(session.rewards), session.rows[-1]
    for _ in range(4):
        session.back()
    assert session.time == 8 and len(session.rows) == 9
    for _ in range(4):
        session.step()
    assert (mind_of(session), session.rewards) == (before, rewards)
    assert session.rows[-1].obs == row.obs


def test_back_undoes_experiments_too(room: Loaded) -> None:
    session = played(room, 10)
    before = mind_of(session)
    session.step()
    session.wipe()
    session.change()
    session.step()
    session.back()
    session.back()
    assert mind_of(session) == before and [event.kind for event in session.events] == ["step"] * 10


def test_there_is_nothing_before_the_first_step(room: Loaded) -> None:
    with pytest.raises(ValueError, match="nothing before"):
        played(room, 0).back()


def test_a_wiped_memory_holds_the_current_row_alone(room: Loaded) -> None:
    session = played(room, 9)
    session.wipe()
    assert [row.time for row in session.past] == [9]
    assert session.thought is not None and session.thought.attention is not None
    assert session.thought.attention.shape[-1] == 1
    fresh = room.mind()
    _, _, alone = think([Moment(fresh, session.row, fresh.empty_memory(), 0)])[0]
    assert alone.probabilities == session.thought.probabilities
    session.step()
    assert [row.time for row in session.past] == [9, 10]


def test_the_world_changes_under_the_agent_and_the_room_stays(room: Loaded) -> None:
    session = played(room, 6)
    task: Any = session.world._task()
    before = (task.key[0].tolist(), task.door[0].tolist())
    place = (task.position[0].tolist(), task.start[0].tolist())
    session.change()
    task = session.world._task()
    assert (task.key[0].tolist(), task.door[0].tolist()) != before
    assert (task.position[0].tolist(), task.start[0].tolist()) == place
    assert session.time == 6


def test_another_lanes_memory_is_as_old_and_of_another_world(room: Loaded) -> None:
    session = played(room, 7)
    own = session.past[:7]
    session.transplant()
    past = session.past
    assert [row.time for row in past] == list(range(8))
    assert [row.own for row in past] == [False] * 7 + [True]
    assert [row.obs for row in past[:7]] != [row.obs for row in own]
    assert session.look(2).own is False
    assert session.frames.get(session.look(2).frame) is not None
    thinks = mind_of(session)
    session.step()
    session.back()
    assert mind_of(session) == thinks


def test_a_transplant_after_going_back_is_another_one(room: Loaded) -> None:
    session = played(room, 5)
    session.wipe()
    session.transplant()
    assert [event.time for event in session.events[5:]] == [5, 5]
    session.back()
    for _ in range(3):
        session.step()
    session.transplant()  # as many events before it as before the first, but two steps later
    assert [row.own for row in session.past] == [False] * 7 + [True]


def test_experiments_are_limited(room: Loaded) -> None:
    session = played(room, 1)
    for _ in range(_MAX_EXPERIMENTS):
        session.wipe()
    with pytest.raises(ValueError, match="experiments are enough"):
        session.wipe()


def test_a_person_plays_in_the_agents_world(room: Loaded) -> None:
    agent, person = played(room, 0), played(room, 0, player="you")
    assert agent.rows[0].obs == person.rows[0].obs
    assert agent.rivals.best == person.rivals.best and agent.rivals.random == person.rivals.random
    left = [move.name for move in person.world.moves].index("left")
    for _ in range(4):
        person.step(left)
    assert numbers(person.rows[-1])[0] == 0.0 or person.rows[-1].first
    assert person.thought is not None  # what the agent would do there
    with pytest.raises(ValueError, match="expected a move"):
        person.step()
    with pytest.raises(ValueError, match="there are 5 moves"):
        person.step(5)
    with pytest.raises(ValueError, match="the agent plays"):
        agent.step(0)


def test_references_are_of_this_very_world(room: Loaded) -> None:
    session = played(room, 0, seed=11)
    seeds = session.world.begin().world_seed
    task: Any = session.world._task()
    assert session.rivals.best == task.best_play(seeds).reward[0].tolist()
    assert len(session.rivals.random) == session.world.horizon
    assert 0 <= session.rivals.random[-1] < sum(session.rivals.best or [])


def test_random_play_of_a_slow_environment_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Shelf([str(untrained(tmp_path / "pole", "gym", {}))]).load("pole")
    whole = Session(loaded, 1)
    assert len(whole.rivals.random) == whole.world.horizon == 500
    monkeypatch.setattr(world, "RANDOM_SECONDS", 0.0)
    assert Session(loaded, 1).rivals.random == [1.0]  # one step of CartPole, then time was up


def test_a_rollout_ends_once(room: Loaded) -> None:
    session = played(room, 40)
    assert session.ended and session.thought is None
    for refused in (session.step, session.wipe, session.transplant):
        with pytest.raises(ValueError, match="has ended"):
            refused()
    session.back()
    assert not session.ended and session.time == 39


def test_a_dark_room_hides_key_and_door(room: Loaded) -> None:
    bright, dark = (Session(room, 5, dark=dark) for dark in (False, True))
    colours = [
        {tuple(pixel) for pixel in picture.reshape(-1, 3).tolist()}
        for picture in (s.frames.picture(s.rows[0].frame) for s in (bright, dark))
        if picture is not None
    ]
    # Key, door and floor are under the fog; the start is where the agent is.
    assert {draw.HINT, draw.GOAL} <= colours[0] - colours[1]
    assert colours[1] - colours[0] == {draw.FOG}


def test_goals_are_asked_for_read_and_followed(shelf: Shelf) -> None:
    loaded = shelf.load("road")
    drawn = Session(loaded, 4)
    goals: Any = drawn.world._task()
    places = goals.achievable(0)[:2, 0].tolist()
    session = Session(loaded, 4, instruction=", ".join(map(str, places)))
    assert session.world.asked(session.row) == [(str(p), False) for p in places]
    assert numbers(session.rows[0])[0] == numbers(drawn.rows[0])[0]
    with pytest.raises(ValueError, match="expected"):
        Session(loaded, 4, instruction="eat cow")
    assert session.rivals.best is not None and sum(session.rivals.best) <= 2
    session.step()
    session.change()
    assert session.events[-1].kind == "change"


@pytest.mark.parametrize("preset", ["package-delivery", "maze-runner", "crafter"])
def test_agents_that_follow_instructions_are_loaded(preset: str, tmp_path: Path) -> None:
    """Their shapes are checked before any memory is allocated, tokens and numbers alike."""
    shelf = Shelf([str(untrained(tmp_path / "run", preset, {}))])
    assert shelf.load("run").agent.spec.goals is not None


def test_continuous_actions_have_means_and_keys(shelf: Shelf) -> None:
    session = played(shelf.load("wind"), 3)
    assert session.thought is not None
    assert session.thought.probabilities is None
    assert len(session.thought.mean or []) == len(session.thought.deviation or []) == 2
    person = Session(shelf.load("wind"), 3, player="you")
    up = [move.name for move in person.world.moves].index("up")
    before: Any = person.world._task().position.copy()  # type: ignore[union-attr]
    person.step(up)
    wind: Any = person.world._task()
    moved = wind.position - before
    np.testing.assert_allclose(moved, np.array([[0.0, 0.1]]) + wind.wind)


def test_a_memory_without_attention_can_be_wiped_and_transplanted(shelf: Shelf) -> None:
    session = played(shelf.load("gru"), 6)
    assert session.thought is not None and session.thought.attention is None
    before = mind_of(session)
    session.wipe()
    session.transplant()
    assert mind_of(session) != before
    session.back()
    session.step()
    assert mind_of(session) == before


def test_pictures_have_a_limit_and_the_oldest_go_first() -> None:
    store, rng = FrameStore(max_bytes=30_000), np.random.default_rng(0)
    numbers = [store.add(rng.integers(0, 255, (50, 50, 3), np.uint8)) for _ in range(12)]
    assert store.num_bytes <= 30_000
    assert store.get(numbers[0]) is None and store.get(numbers[-1]) is not None
    assert store.get(store.add(None)) is None


def test_only_named_runs_and_the_zoo_are_on_the_shelf(shelf: Shelf) -> None:
    keys = [about["key"] for about in shelf.describe()]
    assert {"room", "short", "wind", "road", "gru", "dark-key-to-door"} <= set(keys)
    assert shelf.default == "room"
    for key in ("/etc/passwd", "../room", "zoo:dark-key-to-door", ""):
        with pytest.raises(ValueError, match="no agent is called"):
            shelf.load(key)
    with pytest.raises(ValueError, match="not a run"):
        Shelf(["nowhere"])


@pytest.mark.parametrize("name", ["maze-runner", "bit-recall", "masked-recall", "pixel-recall"])
def test_worlds_of_more_domains_can_be_changed(name: str) -> None:
    settings = preset(name).env
    changed, same = World(settings, 3), World(settings, 3)
    for one in (changed, same):
        one.begin()
        assert one.change is not None
    changed.apply_change(7)
    before, after = vars(same._task()), vars(changed._task())
    arrays = [key for key, value in before.items() if isinstance(value, np.ndarray)]
    assert any(not np.array_equal(before[key], after[key]) for key in arrays)
    changed.step(RandomPolicy(changed.spec, 0).act(changed.begin(), None)[0])


def test_a_changed_maze_leaves_agent_and_goals_on_free_cells() -> None:
    world = World(preset("maze-runner").env, 3)
    world.begin()
    for seed in range(5):
        world.apply_change(seed)
        task: Any = world._task()
        for x, y in [task.position[0], *task.instruction[0, : task.num_goals[0]].astype(int)]:
            assert not task.walls[0, y, x]
        assert (task.best_steps(0) > 0).all()


@pytest.mark.parametrize("name", ["CartPole-v1", "amago/Crafter-v0"])
def test_a_world_that_cannot_be_changed_says_why(name: str) -> None:
    world = World(EnvSettings(id=name), 0)
    assert world.change is None
    with pytest.raises(ValueError, match="cannot be changed under the agent: "):
        world.apply_change(0)


def test_random_play_and_oracle_follow_a_change_and_going_back_undoes_it(room: Loaded) -> None:
    session = Session(room, 5)
    best, random = list(session.rivals.best or []), list(session.rivals.random)
    for _ in range(6):
        session.step()
    session.change()
    assert (
        session.rivals.best is not None
        and session.rivals.best[:6] == best[:6]
        and session.rivals.best != best
    )
    assert session.rivals.random[:6] == random[:6] and len(session.rivals.random) == len(random)
    assert session.rivals.random != random and session.rivals.random == sorted(
        session.rivals.random
    )
    task: Any = session.world._task()
    steps = np.abs(task.start[0] - task.key[0]).sum() + np.abs(task.key[0] - task.door[0]).sum()
    assert sum(session.rivals.best[6 : 6 + max(1, int(steps))]) == 2.0, (
        "the oracle of the new world"
    )
    session.step()
    session.back()
    assert session.rivals.best is not None and session.rivals.best != best
    session.back()  # before the change, too
    assert session.rivals.best == best and session.rivals.random == random


def test_a_visitor_is_told_what_others_earn_in_the_changed_world(shelf: Shelf) -> None:
    visitor = Visitor(shelf)
    begin = {"type": "begin", "agent": "room", "seed": 5, "player": "agent", "instruction": "",
             "dark": False}  # fmt: skip
    began = ask(visitor, begin)
    assert "others" not in ask(visitor, {"type": "step"})
    changed = ask(visitor, {"type": "change"})["others"]
    assert changed["oracle"] != began["oracle"] and changed["oracle"] == sorted(changed["oracle"])
    back = ask(visitor, {"type": "back"})["others"]
    assert back == {"oracle": began["oracle"], "random": began["random"]}
    visitor.close()
