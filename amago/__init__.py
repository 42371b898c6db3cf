"""amago: agents that adapt to unfamiliar worlds from memory alone."""
