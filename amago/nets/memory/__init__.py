"""Memories behind one interface."""

from __future__ import annotations

from amago.nets.memory.feedforward import FeedforwardMemory
from amago.nets.memory.gru import GRUMemory
from amago.nets.memory.interface import Memory
from amago.nets.memory.transformer import TransformerMemory

__all__ = ["FeedforwardMemory", "GRUMemory", "Memory", "TransformerMemory"]
