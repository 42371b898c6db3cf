"""What goes wrong in training, found in the numbers that a run logs (docs/diagnosis.md)."""
