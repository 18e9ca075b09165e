"""Read files as blocks of whole lines, plain or compressed by gzip (E1).

The files of every format whose rows are lines are read by this module. The module itself does not
depend on the format.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path

# The largest number of bytes of a line; the LF is not counted.
LONGEST = 2_000_000
BLOCK = 2**20
NO_RECORD = b'"\n'
"""A line that is not a record of any file, because its quote does not close."""
DAMAGED = (OSError, EOFError, zlib.error)
"""The errors that reading a damaged file raises."""


def open_binary(path: Path) -> BufferedIOBase:
    """Open a file for reading bytes; decompress it if its name ends in ``.gz``."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rb")
    return path.open("rb")


def whole_lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    r"""Read a file in blocks, each of which ends at the end of a line.

    ``read`` returns at most the requested number of bytes, and no bytes at the end of the file. A
    line is replaced by ``NO_RECORD`` if more than ``LONGEST`` bytes of it are before the end of a
    block. Whether that holds for a long line depends on the bytes before it. So that no row depends
    on other rows, callers must treat every line of more than ``LONGEST`` bytes like ``NO_RECORD``.

    >>> list(whole_lines(io.BytesIO(b"a,1\nb,2").read))
    [b'a,1\n', b'b,2\n']
    """
    incomplete_line = b""
    dropping = False
    while block := read(BLOCK):
        if dropping:
            _, feed, block = block.partition(b"\n")
            dropping = not feed
            if feed:
                yield NO_RECORD
        end = block.rfind(b"\n") + 1
        if end:
            yield incomplete_line + block[:end]
            incomplete_line = block[end:]
        else:
            incomplete_line += block
        if len(incomplete_line) > LONGEST:
            incomplete_line = b""
            dropping = True
    if dropping:
        yield NO_RECORD
    if incomplete_line:
        yield incomplete_line + b"\n"
