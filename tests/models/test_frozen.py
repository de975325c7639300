"""What several models have in common is in memory once."""

from mh4.models.frozen import shared


class Made:
    def __init__(self, *contents):
        self.contents = contents


class Other(Made):
    pass


def test_only_what_is_made_of_the_same_contents_is_shared():
    one = shared(Made, b"words", b"table")
    assert shared(Made, b"words", b"table") is one
    for kind, *contents in ((Made, b"others", b"table"), (Made, b"words", b"others"), (Other, b"words", b"table")):
        other = shared(kind, *contents)
        assert (type(other), other.contents) == (kind, tuple(contents))
