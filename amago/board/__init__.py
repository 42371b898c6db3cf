"""The board: how soon each task's bar is reached, per method."""
