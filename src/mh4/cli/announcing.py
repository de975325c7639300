"""Tell users when kernels are compiled, at their first use, which takes a while."""

import threading

from numba.core import event

from .options import say

COMPILING = "mh4: compiling kernels that are used for the first time; this takes up to a minute, once"


class Announcer(event.Listener):
    """Numba listener that announces compilation, once; otherwise nothing would be seen for up to a minute."""

    def __init__(self) -> None:
        self.waits = True
        self.lock = threading.Lock()

    def on_start(self, event: event.Event) -> None:
        """Print the message for the first kernel of mh4."""
        kernel = event.data["dispatcher"].py_func
        with self.lock:
            first, self.waits = self.waits, self.waits and not kernel.__module__.startswith("mh4.")
        if first and not self.waits:
            say(COMPILING)

    def on_end(self, event: event.Event) -> None:
        """Do nothing."""


def announce_compiling() -> None:
    """Print a message when the first kernel that is not cached is compiled."""
    event.register("numba:compile", Announcer())
