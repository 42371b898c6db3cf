"""Every figure and table of the paper as an entry that one command reproduces."""
