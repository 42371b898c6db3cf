"""Crafter: the same game as the original, but reproducible, and every goal seen when it happens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import crafter
import numpy as np
import pytest
from crafter import constants, objects
from gymnasium.utils.env_checker import check_env

from amago.envs.domains.crafter.env import Crafter
from amago.envs.domains.crafter.game import ACTIONS, ITEMS, TEXTURES, Game, _World
from amago.envs.domains.crafter.goals import (
    _ACHIEVEMENTS,
    _PLACE_GOALS,
    COORDINATES,
    TRAVEL_GOALS,
    VOCABULARY,
)
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings

FRONT = (0, 1)
"""The player looks down when a world begins."""


class Original(crafter.Env):  # type: ignore[misc]
    """Crafter itself, with creatures kept in order and nothing drawn."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self._world.__class__ = _World

    def _obs(self) -> None:
        return None


def state_of(world: Any) -> tuple[Any, ...]:
    name, keys, position, *_ = world.random.get_state()
    return world._mat_map.tolist(), world._obj_map.tolist(), name, keys.tolist(), position


def words(found: Any) -> set[str]:
    return {" ".join(VOCABULARY[token] for token in tokens if token) for tokens in found}


def cleared(**arguments: Any) -> Crafter:
    """A world of grass, with nobody but the player, at noon."""
    env = Crafter(**arguments)
    env.reset(seed=0)
    world = env.game.world
    for item in world.objects[1:]:
        world.remove(item)
    world._mat_map[:] = world._mat_ids["grass"]
    return env


def front(env: Crafter, step: int = 1) -> tuple[int, int]:
    x, y = env.game.player.pos
    return int(x) + step * FRONT[0], int(y) + step * FRONT[1]


def do(env: Crafter, action: str) -> set[str]:
    """The goals that an action achieved, without those of being somewhere."""
    found = words(env.step(ACTIONS.index(action))[4]["achieved"])
    return {goal for goal in found if not goal.startswith("travel")}


# How each achievement comes about: what lies in front, what is carried, what is done.
COLLECT = {
    "collect_wood": ("tree", {}), "collect_stone": ("stone", {"wood_pickaxe": 1}),
    "collect_coal": ("coal", {"wood_pickaxe": 1}), "collect_iron": ("iron", {"stone_pickaxe": 1}),
    "collect_diamond": ("diamond", {"iron_pickaxe": 1}), "collect_drink": ("water", {}),
}  # fmt: skip
USES = {
    "place_stone": {"stone": 1}, "place_table": {"wood": 2}, "place_furnace": {"stone": 4},
    "place_plant": {"sapling": 1}, "make_wood_pickaxe": {"wood": 1}, "make_wood_sword": {"wood": 1},
    "make_stone_pickaxe": {"wood": 1, "stone": 1}, "make_stone_sword": {"wood": 1, "stone": 1},
    "make_iron_pickaxe": {"wood": 1, "coal": 1, "iron": 1},
    "make_iron_sword": {"wood": 1, "coal": 1, "iron": 1},
}  # fmt: skip
CREATURES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "defeat_zombie": lambda world, at, player: objects.Zombie(world, at, player),
    "defeat_skeleton": lambda world, at, player: objects.Skeleton(world, at, player),
    "eat_cow": lambda world, at, player: objects.Cow(world, at),
}


def bring_about(env: Crafter, name: str, *, able: bool = True) -> set[str]:
    """Drive the world into an achievement, or just short of it, and report the last step."""
    world, player, at = env.game.world, env.game.player, front(env)
    if name in COLLECT:
        material, tools = COLLECT[name]
        world[at] = material if able or tools else "path"
        player.inventory.update(tools if able else {})
        return do(env, "do")
    if name in USES:
        if name.startswith("make"):
            world[front(env, -1)] = "table"
            world[int(player.pos[0]) - 1, int(player.pos[1])] = "furnace"
        carried = dict(USES[name])
        if not able:
            carried[next(iter(carried))] -= 1
        player.inventory.update(carried)
        return do(env, name)
    if name in CREATURES:
        creature = CREATURES[name](world, at, player)
        creature.health = 1 if able else 9
        world.add(creature)
        return do(env, "do")
    if name == "eat_plant":
        plant = objects.Plant(world, at)
        plant.grown = 400 if able else 10
        world.add(plant)
        return do(env, "do")
    if name == "collect_sapling":
        found: set[str] = set()
        for _ in range(200 if able else 1):
            world[at] = "grass" if able else "sand"
            found = do(env, "do")
            if found:
                break
        return found
    assert name == "wake_up"
    player.sleeping = True
    player.inventory["energy"] = 9 if able else 3
    return do(env, "noop")


@pytest.mark.parametrize("name", _ACHIEVEMENTS)
def test_every_achievement_is_detected_when_it_happens_and_only_then(name):
    text = name.replace("_", " ")
    assert bring_about(cleared(), name, able=False) == set()
    env = cleared()
    assert bring_about(env, name) == {text}
    assert env.game.player.achievements[name] == 1
    assert do(env, "noop") == set()


def test_an_achievement_counts_every_time_but_is_paid_by_crafter_once():
    env = cleared()
    env.game.world[front(env)] = "water"
    env.game.player.inventory["drink"] = 3
    steps = [env.step(ACTIONS.index("do")) for _ in range(3)]
    assert [step[1] for step in steps] == [1.0, 0.0, 0.0]
    assert all("collect drink" in words(step[4]["achieved"]) for step in steps)


def test_names_of_achievements_are_those_of_the_game():
    assert sorted(constants.achievements) == sorted(_ACHIEVEMENTS)


def test_travelling_reaches_the_goal_within_two_steps():
    env = cleared()
    env.game.world.move(env.game.player, (38, 40))
    seen = [words(env.step(ACTIONS.index("move_left"))[4]["achieved"]) for _ in range(7)]
    assert seen == [{"travel 35 40"}] * 5 + [{"travel 30 40"}] * 2


@pytest.mark.parametrize(("turn", "target"), [("move_left", (30, 30)), ("move_up", (31, 29))])
def test_building_at_a_location_is_a_goal_of_expanded_crafter(turn, target):
    for expanded in (True, False):
        env = cleared(expanded=expanded)
        player = env.game.player
        env.game.world.move(player, (31, 30))
        env.game.world[target] = "water"  # turn towards it without walking on
        do(env, turn)
        player.inventory["stone"] = 1
        built = {"place 30 30"} if expanded and target == (30, 30) else set()
        assert do(env, "place_stone") == {"place stone"} | built
        assert env.game.world[target][0] == "stone"


def test_every_location_can_be_built_at_and_travelled_to():
    env = cleared(expanded=True)
    world, player = env.game.world, env.game.player
    player.inventory["stone"] = 9
    for x, y in product(COORDINATES, COORDINATES):
        for creature in [item for item in world.objects if item is not player]:
            world.remove(creature)
        # From the left, or where that is off the map from the right.
        side, turn = ((x - 1, y), "move_right") if x else ((x + 1, y), "move_left")
        world.move(player, side)
        world[x, y] = "water"  # turn towards it without walking on
        env.step(ACTIONS.index(turn))
        player.inventory["stone"] = 9
        seen = words(env.step(ACTIONS.index("place_stone"))[4]["achieved"])
        assert seen == {f"place {x} {y}", "place stone", f"travel {x} {y}"}
        world[x, y] = "grass"
    assert len(_PLACE_GOALS) == len(TRAVEL_GOALS) == 169


@pytest.mark.parametrize("material", ["iron", "diamond"])
def test_being_near_rare_materials_is_a_goal_of_expanded_crafter(material):
    env = cleared(expanded=True)
    x, y = (int(value) for value in env.game.player.pos)
    for offset, near in (((2, 0), True), ((1, 1), True), ((2, 1), False), ((0, -3), False)):
        env.game.world._mat_map[:] = env.game.world._mat_ids["grass"]
        env.game.world[x + offset[0], y + offset[1]] = material
        assert do(env, "noop") == ({f"near {material}"} if near else set())
    corner = cleared(expanded=True)
    corner.game.world.move(corner.game.player, (0, 0))
    corner.game.world[1, 1] = material
    assert do(corner, "noop") == {f"near {material}"}


def test_worlds_and_games_are_those_of_the_original():
    original, game = Original(), Game()
    for episode in range(3):
        original._episode = episode
        original.reset()
        game.begin(hash((0, episode + 1)) % (2**31 - 1))
        assert state_of(original._world) == state_of(game.world)
        for action in np.random.default_rng(episode).integers(0, 17, 250):
            _, reward, over, info = original.step(action)
            assert game.advance(int(action)) == reward and game.dead == over
            assert info["achievements"] == game.player.achievements
            if over:
                break
        assert state_of(original._world) == state_of(game.world)


def test_a_seed_gives_one_game_whether_or_not_it_is_rendered():
    plain, drawn = Crafter(), Crafter(render_mode="rgb_array")
    other, _ = Crafter().reset(seed=12)
    rows = [env.reset(seed=11)[0] for env in (plain, drawn)]
    assert not np.array_equal(rows[0]["view"], other["view"])
    nights = 0
    for time, action in enumerate(np.random.default_rng(0).integers(0, 17, 330)):
        for env in (plain, drawn):
            env.game.player.health = 9  # long enough to see the night
        nights += plain.game.world.daylight < 0.4
        first, second = plain.step(action), drawn.step(action)
        if time % 8 == 0:
            drawn.render()
        for key in first[0]:
            assert np.array_equal(first[0][key], second[0][key])
        assert first[1:4] == second[1:4]
        assert np.array_equal(first[4]["achieved"], second[4]["achieved"])
    assert nights > 40 and state_of(plain.game.world) == state_of(drawn.game.world)
    # Left alone, drawing a night consumes the world's randomness.
    drawn.game.world.daylight = 0.1
    before = state_of(drawn.game.world)
    assert np.array_equal(drawn.render(), drawn.render()) and state_of(drawn.game.world) == before
    crafter.Env.render(drawn.game, (64, 64))
    assert state_of(drawn.game.world) != before


def test_textures_show_what_the_picture_shows():
    env = Crafter()
    env.reset(seed=3)
    game = env.game
    game.world.move(game.player, next(_free(game, 0)))
    assert (game.textures()[0] == 0).all()  # outside the map
    for seed in range(3):
        env.reset(seed=seed)
        world, (px, py) = game.world, game.player.pos
        view = game.textures()
        for x in range(9):
            for y in range(7):
                material, item = world[px + x - 4, py + y - 3]
                shown = material if item is None else item.texture
                assert TEXTURES[view[x, y]] == shown
        assert TEXTURES[view[4, 3]] == "player-down"


def _free(game: Any, x: int) -> Any:
    for y in range(64):
        if game.player.is_free((x, y), constants.materials):
            yield (x, y)


def test_the_state_vector_is_inventory_facing_daylight_and_position():
    env = Crafter()
    obs, _ = env.reset(seed=0)
    assert len(ITEMS) == 16 and obs["state"].shape == (21,)
    daylight = 1 - abs(np.cos(np.pi * 0.3)) ** 3
    expected = [0.9] * 4 + [0.0] * 12 + [0, 1, daylight, 0.5, 0.5]
    assert np.allclose(obs["state"], expected)
    env.game.player.inventory["sapling"] = 7
    obs = env.step(ACTIONS.index("move_left"))[0]
    assert obs["state"][4] == pytest.approx(0.7) and obs["state"][16:18].tolist() == [-1, 0]


@pytest.mark.parametrize("observation", ["textures", "pixels"])
@pytest.mark.filterwarnings("ignore")
def test_the_adapter_passes_gymnasiums_own_check(observation):
    env = Crafter(observation, render_mode="rgb_array")
    check_env(env)
    assert env.render().shape == (450, 450, 3)


def test_pixels_are_crafters_own_picture():
    env = Crafter("pixels")
    obs, _ = env.reset(seed=5)
    assert obs.shape == (64, 64, 3) and obs.dtype == np.uint8
    original = crafter.Env(seed=0)
    original._world, original._player = env.game.world, env.game.player
    original._local_view._world = env.game.world
    assert np.array_equal(original.render(), obs)


def test_death_and_the_horizon_are_terminal():
    env = Crafter(horizon=3)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (True, False)]
    env = cleared()
    env.game.world[front(env)] = "lava"
    _, reward, terminated, truncated, _ = env.step(ACTIONS.index("move_down"))
    assert terminated and not truncated and reward == pytest.approx(-0.9)


def test_lanes_know_the_ids_of_the_view_and_the_horizon():
    spec = make_vector(EnvSettings(id="amago/Crafter-v0"), seed=0, num_lanes=1).spec
    view = spec.obs["view"]
    assert (view.kind, view.shape, view.size, view.dtype) == ("category", (9, 7), 28, "uint8")
    assert spec.obs["state"].kind == "real" and spec.action.size == 17 and spec.horizon == 2000


def test_senseless_arguments_are_refused():
    with pytest.raises(ValueError, match="textures or pixels"):
        Crafter("symbols")
    with pytest.raises(ValueError, match="horizon"):
        Crafter(horizon=0)
