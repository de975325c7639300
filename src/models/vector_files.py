"""Files of word vectors: text, plain or compressed, binary files of word2vec, and models of fastText."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from mh4.machine import reason_of, require

from .encoder import OnReading, UnusableError

LARGEST = 1 << 16  # numbers in a vector
LONGEST = 1 << 24  # bytes in a line
CHUNK = 1 << 20  # bytes of a binary file read at a time, more than the largest vector takes
REPORTED = 1_000  # words between two reports of progress
_PACKED: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
_ZIP = b"PK\x03\x04"  # first bytes of zip archives
_FASTTEXT = b"\xba\x16\x4f\x2f"  # first bytes of fastText models
_NUMERIC = b"0123456789+-.eE \t\r\n"
_CONTROLS = bytes(range(32))


class Entry(NamedTuple):
    """A word of a file, with its numbers as they stand there."""

    word: str
    numbers: bytes
    place: str  # such as "line 7"


def read_vectors(
    name: str, most: int, wanted: Iterable[str], on_reading: OnReading
) -> tuple[list[str], np.ndarray[Any, np.dtype[np.float32]]]:
    """The vectors of the first ``most`` words of a file, which are the most frequent ones, and of all ``wanted`` words.

    Only these words are held in memory, except while a model of fastText is read. If a word is repeated, its first
    vector counts.

    Parameters
    ----------
    name
        A text file with a word and its numbers on each line, with or without the header of word2vec and fastText, plain
        or compressed by gzip, bzip2 or xz; a binary file of word2vec, whose name ends in ``.bin`` or ``.bin.gz``; or a
        model of fastText, which makes a vector for any ``wanted`` word from its n-grams (extra ``mh4[vectors]``).

    Returns
    -------
    words : list of N str
    vectors : float32 (N, D)

    Raises
    ------
    UnusableError
        The file is none of these, or it is damaged or truncated; the message names it and the line, or the word.
    """
    path, wanted = Path(name), set(wanted)
    if not name or not path.is_file():
        raise UnusableError(f"{name or 'vectors'}: no such file")
    reader = _Reader(path, on_reading)
    with reader.opened() as stream:
        if stream.peek(len(_FASTTEXT)).startswith(_FASTTEXT):
            return _of_fasttext(path, most, wanted)
        if stream.peek(len(_ZIP)).startswith(_ZIP):
            raise reader.error("", "is a zip archive (unpack it, and name the file of vectors in it)")
        words: dict[str, None] = {}
        numbers = bytearray()
        for entry in reader.entries(stream):
            if entry.word not in words and (len(words) < most or entry.word in wanted):
                numbers += reader.floats(entry)
                words[entry.word] = None
    return list(words), np.frombuffer(numbers, np.float32).reshape(len(words), reader.size)


class _Reader:
    """Reads a file of vectors once, and reports where it is invalid.

    ``size``, the numbers in a vector, is known once the first line has been read.
    """

    def __init__(self, path: Path, on_reading: OnReading) -> None:
        self.path, self.on_reading = path, on_reading
        self.size = 0
        self.binary = ".bin" in path.suffixes[-2:]
        self.done = 0  # words read

    def error(self, place: str, problem: str) -> UnusableError:
        return UnusableError(f"{self.path}: {place}: {problem}" if place else f"{self.path}: {problem}")

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file, decompressed."""
        try:
            with self.path.open("rb") as self.raw:
                start = self.raw.peek(8)
                unpacked = next((kind for magic, kind in _PACKED.items() if start.startswith(magic)), None)
                yield self.raw if unpacked is None else unpacked(self.raw)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            reason = error.strerror if isinstance(error, OSError) else None  # none if decompression fails
            problem = f"cannot be read: {reason.lower()}" if reason else "its packed content is damaged or cut short"
            raise self.error(f"after {self.done} words" if self.done else "", problem) from None

    def entries(self, stream: Any) -> Iterator[Entry]:
        """Yield all words in order."""
        total = self.path.stat().st_size
        first = stream.readline(LONGEST).removeprefix(BOM_UTF8)
        sizes = first.split()
        headed = len(sizes) == 2 and all(map(bytes.isdigit, sizes)) and len(first) < 50
        count = int(sizes[0]) if headed else None
        self.size = int(sizes[1]) if headed else len(sizes) - 1
        if not first or count == 0:
            raise self.error("", "holds no vectors")
        if not 1 <= self.size <= LARGEST:
            raise self.error("line 1", f"vectors of {max(self.size, 0)} numbers; from 1 to {LARGEST} are supported")
        if self.binary and count is None:
            raise self.error("", "not a binary file of word2vec, which begins with a line of two numbers")
        found = self._binary(stream, count) if self.binary and count else self._text(stream, first, headed)
        for entry in found:
            self.done += 1
            if count is not None and self.done > count:
                raise self.error(entry.place, f"there are more words than the {count} that line 1 announces")
            if self.done % REPORTED == 0:
                self.on_reading(self.raw.tell(), total)
            yield entry
        if count is not None and self.done < count:
            raise self.error("", f"ends after {self.done} of {count} words: it is truncated")
        self.on_reading(total, total)

    def _text(self, stream: Any, first: bytes, headed: bool) -> Iterator[Entry]:
        lines = iter(lambda: stream.readline(LONGEST), b"")
        if not headed:
            lines = (line for part in ([first], lines) for line in part)
        for number, line in enumerate(lines, start=2 if headed else 1):
            place = f"line {number}"
            if not line.strip() and not any(map(bytes.strip, lines)):
                return
            fields = line.rsplit(None, self.size)
            word = fields[0].strip() if fields else b""
            extra = word.split()[1:]  # words may hold spaces, but a number at the end is one too many
            if len(fields) <= self.size or (extra and _is_number(extra[-1])):
                found = max(len(line.split()) - 1, 0)
                raise self.error(place, f"has {found} numbers where {self.size} are expected")
            numbers = line[line.index(word) + len(word) :]
            if numbers.translate(None, _NUMERIC):
                wrong = next(field for field in fields[1:] if field.translate(None, _NUMERIC))
                if wrong.translate(None, _CONTROLS) != wrong:
                    raise self.error(place, "is not text (the names of word2vec's binary files must end in .bin)")
                raise self.error(place, f"{_shown(wrong)} is not a finite number")
            yield Entry(self._decoded(word, place), numbers, place)

    def _binary(self, stream: Any, count: int) -> Iterator[Entry]:
        width = 4 * self.size
        rest, done = b"", 0
        while done < count and (piece := stream.read(CHUNK)):
            rest, start = rest + piece, 0
            while done < count and (space := rest.find(b" ", start)) >= 0 and space + width < len(rest):
                done += 1
                place, end = f"word {done}", space + 1 + width
                if done == 1 and not rest[space + 1 : space + 9].translate(None, _NUMERIC):
                    raise self.error("", "is text (the names of text files must not end in .bin)")
                yield Entry(self._decoded(rest[start:space].lstrip(b"\n"), place), rest[space + 1 : end], place)
                start = end
            if start == 0 and len(rest) > CHUNK + width:
                raise self.error(f"word {done + 1}", "has no end")
            rest = rest[start:]

    def _decoded(self, word: bytes, place: str) -> str:
        try:
            return word.decode()
        except UnicodeDecodeError:
            raise self.error(place, f"{_shown(word)} is not UTF-8") from None

    def floats(self, entry: Entry) -> bytes:
        """The numbers of a vector as float32."""
        if self.binary:
            values = np.frombuffer(entry.numbers, "<f4")
        else:
            fields = entry.numbers.split()
            try:
                with np.errstate(over="ignore"):
                    values = np.array([*map(float, fields)]).astype(np.float32)
            except ValueError:
                wrong = next(field for field in fields if not _is_number(field))
                raise self.error(entry.place, f"{_shown(wrong)} is not a finite number") from None
        if not np.isfinite(values).all():
            raise self.error(entry.place, f"the vector of {_shown(entry.word.encode())} holds NaN or infinity")
        return values.astype(np.float32).tobytes()


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _shown(field: bytes) -> str:
    return repr(field[:40].decode(errors="replace"))


def _of_fasttext(path: Path, most: int, wanted: set[str]) -> tuple[list[str], np.ndarray[Any, np.dtype[np.float32]]]:
    fasttext = require("gensim.models.fasttext", "vectors")
    try:
        vectors = fasttext.load_facebook_vectors(str(path))
        words = list(dict.fromkeys([*vectors.index_to_key[:most], *sorted(wanted)]))
        found = np.array([vectors.get_vector(word) for word in words], np.float32)
    except Exception as error:  # gensim raises all kinds of errors for a damaged file
        raise UnusableError(f"{path}: cannot be read as a model of fastText: {reason_of(error)}") from None
    whole = np.isfinite(found).all(1)
    if not whole.all():
        raise UnusableError(f"{path}: the vector of {words[int(whole.argmin())]!r} holds NaN or infinity")
    known = np.any(found, axis=1)  # others: zeros, since none of the word's n-grams is known
    return [word for word, one in zip(words, known.tolist(), strict=True) if one], found[known]
