"""The check for error messages of the command line."""

from types import SimpleNamespace


def fails_with_one_line(result: SimpleNamespace, *words: str) -> str:
    """Check for exit status 2 and one line on stderr, with all ``words`` and no traceback; return the line."""
    stderr = result.stderr.decode()
    assert result.returncode == 2, stderr
    assert "Traceback" not in stderr
    assert len(stderr.strip().splitlines()) == 1, stderr
    for word in words:
        assert word in stderr
    return stderr
