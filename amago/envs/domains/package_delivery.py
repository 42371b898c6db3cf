"""Package Delivery: bring packages to places along a road whose forks must be learned."""

from __future__ import annotations

import numpy as np

from amago import ragged
from amago.envs.domain import Domain
from amago.envs.tasks import draw
from amago.envs.tasks.base import Eyes, check_at_least
from amago.envs.tasks.goal_task import GoalTask
from amago.goals import GoalSpec
from amago.presets.base import PAPER_INSTRUCTED, SMALL, Preset
from amago.presets.sizes import Size
from amago.ragged import Ragged
from amago.types import BARE_KEY, Array

FORWARD, LEFT, RIGHT, STAY = range(4)
DROPS = np.arange(4, 8)
"""Four ways to drop a package, of which one is right in each world."""
_FORKS = (2, 6)
"""Fewest and most forks of a road."""
_FEWEST_GOALS = 2
_PACKAGES_PER_GOAL = 3


class PackageDelivery(GoalTask):
    """A road of cells 0..road-1; whoever arrives at its end, at a wrong side or drops wrongly
    is sent back to 0.

    At a fork the right side moves on by one; elsewhere forward does. A drop counts with the
    world's own action, a package left, off forks and off 0; it achieves the goal (position).
    Seen are the position, the packages left and whether here is a fork.
    """

    def __init__(self, road: int = 30, horizon: int = 180, max_goals: int = 4) -> None:
        from gymnasium import spaces

        check_at_least(1, horizon=horizon, max_goals=max_goals)
        check_at_least(_FORKS[1] + max_goals + 1, road=road)
        self.road = road
        self.horizon = horizon
        self.goals = GoalSpec(max_goals, 1, low=(0,), high=(road - 1,))
        # Places are categories: to know one again is all that the road asks of memory, and
        # neighbours have nothing in common.
        sizes = [road, _PACKAGES_PER_GOAL * max_goals + 1, 2]
        self.observation_space = spaces.MultiDiscrete(sizes)
        self._ids = np.min_scalar_type(max(sizes) - 1)
        self.action_space = spaces.Discrete(8)

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.position, self.packages, self.drop = np.zeros((3, num_lanes), np.int64)
        self.side = np.zeros((num_lanes, self.road), np.int64)
        """The action that is right at each cell's fork, 0 where there is none."""
        self._lanes = np.arange(num_lanes)

    def build(self, lane: int, rng: np.random.Generator) -> Array:
        num_forks = int(rng.integers(_FORKS[0], _FORKS[1] + 1))
        forks = 1 + rng.permutation(self.road - 1)[:num_forks]
        self.side[lane] = 0
        self.side[lane, forks] = rng.integers(LEFT, RIGHT + 1, num_forks)
        self.drop[lane] = rng.choice(DROPS)
        most = self.goals.max_goals
        num_goals = rng.integers(min(_FEWEST_GOALS, most), most + 1)
        places = rng.permutation(self.achievable(lane)[:, 0])[:num_goals]
        return np.sort(places)[:, None]

    def achievable(self, lane: int) -> Array:
        cells = 1 + np.flatnonzero(self.side[lane, 1:] == 0)
        return cells[:, None].astype(self.goals.dtype)

    def start(self, lanes: Array) -> None:
        self.position[lanes] = 0
        self.packages[lanes] = _PACKAGES_PER_GOAL * self.num_goals[lanes]

    def move(self, action: Array) -> Ragged:
        side = self.side[self._lanes, self.position]
        turns = (action == LEFT) | (action == RIGHT)
        moves = np.where(side > 0, action == side, action == FORWARD)
        drops = action >= DROPS[0]
        possible = (self.packages > 0) & (side == 0) & (self.position > 0)
        delivered = drops & (action == self.drop) & possible
        goals = self.position[delivered][:, None].astype(self.goals.dtype)
        self.packages -= delivered
        sent_back = (drops & ~delivered) | (turns & (side > 0) & ~moves)
        self.position = np.where(sent_back, 0, (self.position + moves) % self.road)
        return ragged.of_counts(delivered, goals)

    def observe(self) -> dict[str, Array]:
        at_fork = self.side[self._lanes, self.position] > 0
        seen = np.stack((self.position, self.packages, at_fork), axis=1)
        return {BARE_KEY: seen.astype(self._ids)}

    def best_steps(self, lane: int) -> Array:
        """A walk in the known world: on, or back to 0 by one wrong drop and on from there."""
        places = self.instruction[lane, : self.num_goals[lane], 0].astype(np.int64)
        before = np.concatenate([[0], places[:-1]])
        walk = np.where(places >= before, places - before, 1 + places)
        return np.cumsum(walk + 1)

    def render(self, lane: int) -> Array:
        """The road in rows of six: forks with their right side, destinations, the agent."""
        everywhere = np.ones(self.road, np.bool_)
        return self.draw(lane, everywhere, everywhere)

    def eyes(self, lane: int) -> Eyes:
        return _Courier(self, lane)

    def draw(self, lane: int, seen: Array, tried: Array) -> Array:
        """The same with fog over cells that were not seen, and sides only of forks tried."""
        cell, columns = 48, 6
        frame = draw.canvas(-(-self.road // columns) * cell, columns * cell, draw.WALL)
        asked = self.instruction[lane, : self.num_goals[lane], 0].tolist()
        still_open = asked[self.progress[lane] :]  # a place may be asked for twice
        for at in range(self.road):
            top, left = at // columns * cell, at % columns * cell
            done = draw.SHADE if at in asked else draw.FLOOR
            colour = draw.GOAL if at in still_open else done if seen[at] else draw.FOG
            draw.box(frame, top + 1, left + 1, top + cell - 1, left + cell - 1, colour)
            if self.side[lane, at] and tried[at]:
                # A mark in the upper corner says left, in the lower one right.
                down = 5 if self.side[lane, at] == LEFT else cell - 13
                draw.box(frame, top + down, left + 4, top + down + 8, left + cell - 4, draw.HINT)
            if at == self.position[lane]:
                draw.disc(frame, top + cell / 2, left + cell / 2, 0.28 * cell, draw.AGENT)
        return frame


class _Courier:
    """The cells that were visited, and the right side of forks where one was chosen; the
    destinations are known from the instruction."""

    def __init__(self, task: PackageDelivery, lane: int) -> None:
        self._task, self._lane = task, lane
        self._seen, self._tried = np.zeros((2, task.road), np.bool_)
        self._at = int(task.position[lane])

    def look(self) -> None:
        before, self._at = self._at, int(self._task.position[self._lane])
        self._seen[self._at] = True
        # A choice leads on from a fork or back to the start; so does a drop there, but it is rare.
        self._tried[before] |= self._at != before

    def frame(self) -> Array:
        return self._task.draw(self._lane, self._seen, self._tried)


# Returns tell little about a fork or a drop, what happens next tells it at once: the forecast
# outweighs the other losses, and memory of both is learned within thousands of updates. Cloning
# weighs as much as the policy gradient: the policy then takes longer to settle on one of the four
# drops, right or wrong. With more noise most rollouts would be sent back before they see a fork
# twice. A wrong turn shows the start of the road: where it was taken is in the row before. Two
# heads of 32 look places up sooner than four of 16.
_CPU = {
    "env.id": "amago/PackageDelivery-v0",
    "env.num_lanes": 96,
    "exploration.start": (0.5, 0.05),
    "exploration.end": (0.3, 0.01),
    "exploration.anneal_fraction": 0.7,
    "replay.capacity": 4_000,
    "replay.batch_size": 16,
    "transformer.num_heads": 2,
    "transformer.previous_row": True,
    "heads.num_critics": 2,
    "agent.discounts": (0.5, 0.8, 0.9),
    "agent.acting_discount": 0.95,
    "terms.cloning.weight": 1.0,
    "terms.world_model.weight": 100.0,
    "agent.n_step": 3,
    "agent.target_tau": 0.03,
    "optim.learning_rate": 1e-3,
    "run.epochs": 100,
    "run.updates_per_epoch": 100,
    "run.eval_interval": 5,
    "run.eval_episodes": 96,
}
_SIZE = Size(128, 3, 8, encoder=(128, 128, 128), heads=(256, 256))
_PAPER = {
    **_SIZE.settings(),
    "env.id": "amago/PackageDelivery-v0",
    "replay.capacity": 15_000,
    "run.updates_per_epoch": 1500,
}

DOMAIN = Domain(
    make=PackageDelivery,
    ids={"amago/PackageDelivery-v0": {}},
    presets={
        "package-delivery": Preset(
            "Package Delivery, road of 30: deliver along a road whose forks must be remembered",
            SMALL,
            _CPU,
        ),
        "package-delivery/paper": Preset(
            "Package Delivery, sizes of the paper's Tables 3 and 4", PAPER_INSTRUCTED, _PAPER
        ),
    },
    paper_size=_SIZE,
    picture="blue: agent; green: where to deliver; yellow: forks, the mark says the right side",
    sees="place on the road, packages left, at a fork",
    action_names=(
        "forward",
        "left",
        "right",
        "stay",
        "drop 1",
        "drop 2",
        "drop 3",
        "drop 4",
    ),
)
