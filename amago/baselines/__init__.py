"""Other methods behind the same run folder, so that they stand beside amago's own runs."""
