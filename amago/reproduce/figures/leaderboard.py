"""Minutes to solve on two CPU cores, per task and method: the table in the README."""

from __future__ import annotations

from amago.reproduce.entry import Leaderboard

ENTRY = Leaderboard(paper="the board", runs="runs/board")
