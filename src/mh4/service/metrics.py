"""A server's metrics for Prometheus, and its log: a JSON object for each request, without the text of users."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

STAGES = ("receive", "read", "parse", "write")


class Metrics:
    """The metrics of a server; `text` is the content of ``/metrics``."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "mh4_requests", "Requests answered, by path and status.", ["path", "status"], registry=self.registry
        )
        self.words = Counter("mh4_words", "Words answered, by model.", ["model"], registry=self.registry)
        self.seconds = Histogram(
            "mh4_stage_seconds", "Seconds of a request, by stage.", ["stage"], registry=self.registry
        )
        self.waiting = Gauge("mh4_waiting_words", "Words that wait to be parsed.", registry=self.registry)
        ProcessCollector(registry=self.registry)  # memory, CPU seconds and open files, where there is /proc
        for stage in STAGES:
            self.seconds.labels(stage)

    def text(self) -> bytes:
        """The metrics in Prometheus's text format."""
        return generate_latest(self.registry)


class JsonLog(logging.Handler):
    """Logging handler that writes messages, with tracebacks, as lines of `log_line`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else None
        log_line(level=record.levelname, message=record.getMessage(), **({"traceback": trace} if trace else {}))


def log_line(**values: Any) -> None:
    """Write the time and these values to stderr, as a line of JSON."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    print(json.dumps({"time": time, **values}, ensure_ascii=False), file=sys.stderr, flush=True)  # noqa: T201
