"""What a request to stop is, for all parts that catch the errors of others."""

from __future__ import annotations

import signal


class Terminated(SystemExit):
    """SIGTERM arrived; a script that does not catch it ends with exit code 143.

    Whoever catches the SystemExit of an environment lets this one pass.
    """

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)
