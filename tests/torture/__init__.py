"""Kill runs, damage their files, take away their disk, and see whether anything is lost.

`make torture KILLS=150` runs all of it and writes the tables in docs/reliability.md. A killed run
is taken up again until it is complete; then it must equal, bit for bit, the run that nothing
happened to. Any other attack must be answered by going on or by one sentence that says what is
wrong, and the run must be exact once the cause is gone.
"""
