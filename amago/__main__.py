"""python -m amago."""

from amago.cli import main

main()
