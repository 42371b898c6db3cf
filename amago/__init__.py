"""amago: agents that adapt to unfamiliar worlds from memory alone."""

__version__ = "0.1.0"
