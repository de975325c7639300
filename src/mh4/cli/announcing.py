"""The first use of a kernel compiles it, which takes a while: that is said."""

import threading

from numba.core import event

from .options import say


class Announcer(event.Listener):
    """Says once that kernels are being compiled: for a minute, nothing else can be seen."""

    def __init__(self) -> None:
        self.waits = True
        self.lock = threading.Lock()

    def on_start(self, event: event.Event) -> None:
        """Say so, if it is the first kernel of ours."""
        kernel = event.data["dispatcher"].py_func
        with self.lock:
            first, self.waits = self.waits, self.waits and not kernel.__module__.startswith("mh4.")
        if first and not self.waits:
            say("mh4: compiling kernels that are used for the first time; this takes up to a minute, once")

    def on_end(self, event: event.Event) -> None:
        """Nothing."""


def announce_compiling() -> None:
    """From now on, say that a kernel is compiled, if there is one that is not cached."""
    event.register("numba:compile", Announcer())
