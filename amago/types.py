"""The records that flow through amago, and the letters of their dimensions.

N lanes (parallel environments) · T steps of a trajectory · B batch · L transitions of a
window · G discounts · C critics · K sampled actions · A action size · D state width · M
rows of a batch, sequence after sequence.

Row t holds what the policy knew at t. Actions, rewards and terminals of the loss are
shifted views of the same rows: action[t] = prev_action[t+1], reward[t] = prev_reward[t+1],
done[t] = terminal[t+1]. A trajectory of T steps therefore has T+1 rows. Nothing is padded
and no value is a sentinel: `lengths`, `time`, `first` and `terminal` say what a float must
not. Where `time` is 0 there was no previous action; its entry is 0 and nobody reads it.

Domains with instructions have k = `max_goals` slots for goals of `goal size` numbers; see
`amago.goals`. Elsewhere their fields are None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from amago import ragged
from amago.goals import GoalSpec

if TYPE_CHECKING:
    import torch

Array = NDArray[Any]

BARE_KEY = "observation"
"""The key of an observation that is one array rather than a dictionary."""
ACTION_MASK = "action_mask"
"""The observation key whose array says which actions are allowed."""


@dataclass(frozen=True)
class ObsSpec:
    """One array of an observation, without its leading dimensions."""

    shape: tuple[int, ...]
    dtype: str
    kind: Literal["real", "category", "mask", "image"] = "real"
    """real: goes through the normaliser; category: ids in 0..size-1, one-hot or embedded by
    the network; mask: flags that are fed as they are; image: uint8 pixels, [height, width],
    with channels last or first, for a convolutional trunk."""
    size: int = 0
    """Number of categories (kind "category" only)."""

    @property
    def channels_axis(self) -> int | None:
        """Where an image's channels are: the shorter of its outer axes; None for grey ones."""
        if len(self.shape) == 2:
            return None
        return 0 if self.shape[0] < self.shape[-1] else 2


ActionKind = Literal["discrete", "continuous", "multi_discrete", "multi_binary"]


@dataclass(frozen=True)
class ActionSpec:
    """What the agent may do. Actions stay in this form until a network needs numbers.

    kind            agent action           as features (amago.nets.action)
    discrete        id [N]                 one-hot of `size`
    continuous      vector [N, size]       the vector, each number in [-1, 1]
    multi_discrete  ids [N, len(sizes)]    one one-hot per dimension, concatenated
    multi_binary    bits [N, size]         the bits
    """

    kind: ActionKind
    size: int
    """Numbers that an action has as features."""
    sizes: tuple[int, ...] = ()
    """Choices of every dimension (kind "multi_discrete" only); they sum to `size`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one agent action."""
        if self.kind == "discrete":
            return ()
        return (len(self.sizes) if self.kind == "multi_discrete" else self.size,)

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """The smallest type that holds an action: what trajectories are stored with."""
        if self.kind == "continuous":
            return np.dtype(np.float32)
        choices = {"discrete": self.size, "multi_binary": 2}.get(self.kind) or max(self.sizes)
        return np.min_scalar_type(choices - 1)


@dataclass(frozen=True)
class EnvSpec:
    """All that networks, replay and exploration know about an environment."""

    name: str
    obs: Mapping[str, ObsSpec]
    action: ActionSpec
    horizon: int | None
    """Most steps of a rollout, outer reset to end; None when no limit is known."""
    goals: GoalSpec | None = None
    """What instructions are made of, in domains that have them."""


def max_goals(spec: EnvSpec) -> int | None:
    """Slots of the domain's instructions; None where there are none."""
    return None if spec.goals is None else spec.goals.max_goals


@dataclass(frozen=True)
class Timestep:
    """One row per lane [N], as an environment emits it.

    `last` marks the final row of a rollout: no action follows it. `world_seed` is the seed
    of the lane's current world; `success` is None for environments that do not report it.
    """

    obs: dict[str, Array]
    prev_action: Array  # [N, ...] int64 ids or bits, or float32 vectors (ActionSpec)
    prev_reward: Array  # [N] float32
    time: Array  # [N] int64, steps since the outer reset
    first: Array  # [N] bool, a trial starts here
    terminal: Array  # [N] bool
    last: Array  # [N] bool
    world_seed: Array  # [N] int64
    success: Array | None = None  # [N] bool
    instruction: Array | None = None  # [N, k, goal size], slots from num_goals on are 0
    num_goals: Array | None = None  # [N] int64, goals of the lane's instruction
    progress: Array | None = None  # [N] int64, how many of them are complete
    achieved: tuple[Array, Array] | None = None
    """All goals that the step into this row achieved: (offsets [N+1], goals [total, size])."""

    def __len__(self) -> int:
        return len(self.time)

    def select(self, lanes: Array) -> Timestep:
        """The rows of some lanes."""
        return replace(
            self,
            obs={key: value[lanes] for key, value in self.obs.items()},
            prev_action=self.prev_action[lanes],
            prev_reward=self.prev_reward[lanes],
            time=self.time[lanes],
            first=self.first[lanes],
            terminal=self.terminal[lanes],
            last=self.last[lanes],
            world_seed=self.world_seed[lanes],
            achieved=None if self.achieved is None else ragged.select(self.achieved, lanes),
            **{
                name: None if values is None else values[lanes]
                for name in ("success", "instruction", "num_goals", "progress")
                for values in (getattr(self, name),)
            },
        )


@dataclass(frozen=True)
class Step:
    """What one round trip to the environments brings back.

    `rows` has one row for every lane. Environments that reset a lane within the same call
    hand the finished rollouts' final rows over in `final`, for the lanes `final_lanes`;
    the lane's entry of `rows` is then already the reset row of its next rollout.
    """

    rows: Timestep
    final: Timestep | None = None
    final_lanes: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def parts(self) -> list[tuple[Timestep, Array]]:
        """All rows with the lanes that they belong to, in the order in which they happened.

        Final rows come before the reset rows that replaced them. Whoever walks these pairs
        meets every row once and finds the ends of rollouts in `last`.
        """
        current = (self.rows, np.arange(len(self.rows)))
        return [current] if self.final is None else [(self.final, self.final_lanes), current]


@dataclass(frozen=True)
class Trajectory:
    """One whole rollout of T steps, T+1 rows, outer reset to end."""

    obs: dict[str, Array]  # [T+1, ...]
    prev_action: Array  # [T+1, ...] in the action's stored_dtype
    prev_reward: Array  # [T+1] float32
    first: Array  # [T+1] bool
    terminal: Array  # [T+1] bool
    world_seed: int = 0
    task: str = ""
    instruction: Array | None = None  # [num_goals, goal size]
    progress: Array | None = None  # [T+1] how many goals of the instruction are complete
    achieved: tuple[Array, Array] | None = None
    """Goals achieved per row: (offsets [T+2], goals [total, goal size])."""

    @property
    def num_steps(self) -> int:
        return len(self.prev_reward) - 1


@dataclass(frozen=True)
class Batch:
    """What networks read: B sequences of rows, one after the other, as torch tensors.

    Training: windows of trajectories, from long to short, so that sequences of one length are
    neighbours. Acting: one row of each lane.
    """

    obs: dict[str, torch.Tensor]  # [M, ...]
    prev_action: torch.Tensor  # [M, ...] int64 ids or bits, or float32 vectors (ActionSpec)
    prev_reward: torch.Tensor  # [M] float32
    time: torch.Tensor  # [M] int64
    first: torch.Tensor  # [M] bool
    terminal: torch.Tensor  # [M] bool
    lengths: tuple[int, ...]
    """Rows of each of the B sequences; they sum to M."""
    instruction: torch.Tensor | None = None  # [B, k, goal size] float32, unused slots are 0
    num_goals: torch.Tensor | None = None  # [B] int64
    progress: torch.Tensor | None = None  # [M] int64

    def __len__(self) -> int:
        return len(self.time)

    def to(self, device: torch.device | str) -> Batch:
        """A copy whose tensors are on a device."""

        def move(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: move(item) for key, item in value.items()}
            moves = hasattr(value, "to")
            return value.to(device, non_blocking=True) if moves else value

        return Batch(**{name: move(value) for name, value in vars(self).items()})


Curriculum = dict[str, int]
"""Of each task that has a curriculum of its own: how far it has come."""


class VectorEnv(Protocol):
    """N lanes behind one interface: in process, in workers, or natively batched.

    The world of a lane's n-th rollout depends on (seed, lane, n) alone. So `episodes`, the
    number of rollouts that each lane has begun, and the `curriculum` are all there is to save
    between rollouts.
    """

    spec: EnvSpec
    num_lanes: int
    tasks: tuple[str, ...]
    """A label per lane, for statistics."""
    horizons: tuple[int | None, ...]
    """Per lane: tasks that are trained together may differ, and the spec has the longest."""
    episodes: Array  # [N] int64
    curriculum: Curriculum
    """How far the most advanced lane of each task has come. To assign it is to let all lanes of
    the task go on from there; until then each keeps to what it was last assigned."""

    @property
    def restarts(self) -> int:
        """Environments that were replaced because they failed."""

    def reset(self) -> Timestep:
        """Begin a new rollout in every lane."""

    def step(self, action: Array, idle: Array | None = None) -> Step:
        """Advance every lane by one agent action (see ActionSpec).

        A lane whose row was `last` begins its next rollout instead; its action is ignored. Lanes
        that are `idle`, [N] bool, rest until the next reset: their actions are ignored and their
        rows mean nothing. Whoever marks a lane as idle keeps it so until then.
        """

    def render(self) -> Array:
        """An RGB frame [height, width, 3] of lane 0."""

    def close(self) -> None: ...


class Policy(Protocol):
    """Anything that acts. Memory of a lane is cleared where `time` is 0."""

    def initial_state(self, num_lanes: int) -> Any: ...

    def act(self, timestep: Timestep, state: Any) -> tuple[Array, Any]:
        """Agent actions for every lane, and the memory after this step."""

    def select(self, state: Any, lanes: Array) -> Any:
        """The memory of some of its lanes, by index: from now on it acts for these alone."""
