"""Trained agents: those that come with amago, and how a run becomes such a file."""
