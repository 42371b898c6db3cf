"""A trained agent in a loop of your own: load, predict, and carry the state along.

    python examples/plain_loop.py [RUN]

RUN is a folder made by `amago train dark-key-to-door`, or zoo:dark-key-to-door; without one, a
small agent is trained first.
"""

from __future__ import annotations

import argparse
import tempfile

import gymnasium as gym

import amago
from amago.config import override
from amago.saved.source import find_source

SMALL = {
    "env.kwargs": {"grid": 3, "trial_limit": 10, "horizon": 20},
    "env.num_lanes": 8,
    "run.epochs": 3,
    "run.updates_per_epoch": 5,
    "run.eval_episodes": 8,
    "run.final_eval_episodes": 8,
}


def play(run: str, worlds: int = 5) -> list[float]:
    """Returns of some rollouts, each in a world that the agent has never met."""
    policy = amago.load(run, greedy=True)
    trained = find_source(run).config.env  # the same room size and trial limit as in training
    env = gym.make(trained.id, **trained.kwargs)
    returns = []
    for seed in range(worlds):
        obs, info = env.reset(seed=seed)
        state, reward, total, over = None, 0.0, 0.0, False
        while not over:
            # Start and reward are inputs: the memory is cleared at a start, and an agent that
            # learns while it plays must see what its last action earned.
            action, state = policy.predict(
                obs, state, episode_start=state is None, reward=reward, first=info.get("first")
            )
            obs, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            over = terminated or truncated
        returns.append(total)
    env.close()
    return returns


def main(run: str | None) -> None:
    if run is not None:
        print(play(run))
        return
    with tempfile.TemporaryDirectory() as folder:
        amago.train(override(amago.preset("dark-key-to-door"), SMALL), seed=0, run_dir=folder)
        print(play(folder))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", help="a run of the preset dark-key-to-door")
    main(parser.parse_args().run)
