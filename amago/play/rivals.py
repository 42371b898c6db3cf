"""What others earn in a session's world: the oracle and random play."""

from __future__ import annotations

from amago.play.world import World


class Rivals:
    """Their rewards and returns; from a change of the world on, as in the changed world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._at_first = (world.best_rewards(), world.random_returns())
        self._changed: dict[tuple[int, int], tuple[list[float] | None, list[float]]] = {}
        """Both after every change that was made, by its event and time."""
        self.begin()

    def begin(self) -> None:
        """The world is as it was at first."""
        self.best, self.random = self._at_first
        """Rewards of the oracle at each step, None where nobody knows them; return so far of
        random play."""

    def change(self, event: int, time: int) -> None:
        """The world has changed, at a time and by an event of the session."""
        if (event, time) not in self._changed:
            self._changed[event, time] = self._best_after(time), self._random_after(time)
        self.best, self.random = self._changed[event, time]

    def _best_after(self, time: int) -> list[float] | None:
        best = self._world.best_from_here()
        if best is None or self.best is None:
            return self.best
        return [*self.best[:time], *best][: self._world.horizon]

    def _random_after(self, time: int) -> list[float]:
        random = self._world.random_from_here()
        if random is None:
            return self.random
        so_far = self.random[time - 1] if time else 0.0
        later = [round(so_far + value, 3) for value in random]
        return [*self.random[:time], *later][: self._world.horizon]
