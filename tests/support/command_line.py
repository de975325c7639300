"""What the command line must say of a mistake."""

from types import SimpleNamespace


def fails_with_one_line(result: SimpleNamespace, *words: str) -> str:
    """Check for exit status 2, one readable line on stderr that holds the words, no traceback; returns the line."""
    stderr = result.stderr.decode()
    assert result.returncode == 2, stderr
    assert "Traceback" not in stderr
    assert len(stderr.strip().splitlines()) == 1, stderr
    for word in words:
        assert word in stderr
    return stderr
