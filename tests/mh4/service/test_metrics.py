"""The server's log."""

import json
import logging

from mh4.service.metrics import JsonLog


def test_messages_are_lines_with_their_tracebacks(capsys):
    log = logging.Logger("of this test")
    log.addHandler(JsonLog())
    log.warning("%s words", 3)
    try:
        {}["absent"]
    except KeyError:
        log.exception("failed")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["level"], first["message"], "traceback" in first) == ("WARNING", "3 words", False)
    assert (second["level"], second["message"]) == ("ERROR", "failed")
    assert second["traceback"].endswith("KeyError: 'absent'")
