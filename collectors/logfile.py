"""Following one log file from its start: over renames, copytruncate and restarts of ours. Blocking, no asyncio."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

CHUNK_BYTES = 256 * 1024
LONGEST_LINE_BYTES = 64 * 1024
HEAD_BYTES = 256


@dataclass(frozen=True, slots=True)
class Position:
    """Where reading stands.

    ``head`` is a hash of the file's first ``head_bytes``: inodes are used again, and a copy has another. ``before`` is
    the same of the file that was read to its end before this one.
    """

    inode: int = 0
    offset: int = 0
    head: str = ""
    head_bytes: int = 0
    before: str = ""
    before_bytes: int = 0

    @staticmethod
    def of(state: Mapping[str, Any]) -> Position:
        """From a stored cursor; the start of an unknown file where there is none."""
        return Position(**state["position"]) if "position" in state else Position()


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines read from a file, where they began, and where reading stands after them.

    ``torn``: no newline came for so long that it cannot be a log line; it is to be passed over.
    """

    body: bytes
    offset: int
    after: Position
    torn: bool = False


class LogFile:
    """One path, followed over rotation. Not shared between threads.

    A file renamed away is read to its end before the next one is begun. Of a file cut short in place (copytruncate),
    what was not read yet is looked for in the copy; only lines written between the copy and the cut are lost, as they
    are lost to everybody.
    """

    def __init__(self, path: Path, position: Position) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._ended = False
        self.position = position

    def read(self) -> Piece | None:
        """The next whole lines, None where there are none yet. Raises ``OSError`` where the file cannot be read."""
        if self._file is None and not self._open():
            return None
        if self._cut_short():
            self.close()
            return self.read()
        piece = self._lines()
        if piece is not None:
            return piece
        if not self._ended:
            # Lines may have come between the look above and the rename: the file is looked at once more.
            self._ended = self._renamed()
            return self.read() if self._ended else None
        piece = self._last_line()
        self.position = self._ended_here()
        self.close()
        return piece if piece is None else replace(piece, after=self.position)

    def close(self) -> None:
        """Let go of the file; ``read`` opens it again where it stood."""
        if self._file is not None:
            self._file.close()
        self._file, self._ended = None, False

    def _open(self) -> bool:
        """Open the file in which reading stands, which may have been renamed since; else the path, from its start."""
        path = self._where_it_is_now()
        if path is None:
            if not self._path.exists():
                return False
            path, self.position = self._path, self._ended_here()
        self._file = path.open("rb")
        self.position = self._recognised(self.position)
        return True

    def _ended_here(self) -> Position:
        """The start of a file of which nothing was read yet, after the one that is read now."""
        if not self.position.head_bytes:
            return self.position
        return Position(before=self.position.head, before_bytes=self.position.head_bytes)

    def _where_it_is_now(self) -> Path | None:
        if not self.position.head_bytes:
            return self._unread_generation()
        ours = [path for path in self._generations() if _is_of(path, self.position)]
        return next((path for path in ours if path.stat().st_ino == self.position.inode), ours[0] if ours else None)

    def _unread_generation(self) -> Path | None:
        """A rotated file that came after the one that ended, of which nothing was read yet."""
        if not self.position.before_bytes:
            return None
        ended = Position(head=self.position.before, head_bytes=self.position.before_bytes)
        generations = self._generations()
        last = max((index for index, path in enumerate(generations) if _is_of(path, ended)), default=None)
        unread = [] if last is None else generations[last + 1 :]
        return unread[0] if unread and unread[0] != self._path else None

    def _generations(self) -> list[Path]:
        """The rotated copies of the path, oldest first, and the path itself last."""
        beside = [path for path in self._path.parent.iterdir() if is_rotated(str(path), str(self._path))]
        found = [path for path in beside if path.is_file() and path.stat().st_size]
        found += [self._path] if self._path.is_file() else []
        return sorted(found, key=lambda path: (path == self._path, path.stat().st_mtime_ns))

    def _recognised(self, position: Position) -> Position:
        """``position`` with the inode and as much of the head as there is now."""
        assert self._file is not None
        status = os.fstat(self._file.fileno())
        if position.head_bytes < HEAD_BYTES and status.st_size > position.head_bytes:
            self._file.seek(0)
            head = self._file.read(HEAD_BYTES)
            position = replace(position, head=_hash(head), head_bytes=len(head))
        return replace(position, inode=status.st_ino)

    def _lines(self) -> Piece | None:
        """Whole lines from where reading stands; a line too long to be one is passed over."""
        assert self._file is not None
        self._file.seek(self.position.offset)
        body = self._file.read(CHUNK_BYTES)
        end = body.rfind(b"\n") + 1
        torn = end == 0 and len(body) > LONGEST_LINE_BYTES
        return self._piece(body if torn else body[:end], torn) if torn or end else None

    def _last_line(self) -> Piece | None:
        """The last line of a file that nobody writes any more, though it has no newline."""
        assert self._file is not None
        self._file.seek(self.position.offset)
        body = self._file.read(LONGEST_LINE_BYTES)
        return self._piece(body, torn=False) if body else None

    def _piece(self, body: bytes, torn: bool) -> Piece:
        start = self.position.offset
        self.position = self._recognised(replace(self.position, offset=start + len(body)))
        return Piece(body if body.endswith(b"\n") else body + b"\n", start, self.position, torn)

    def _cut_short(self) -> bool:
        """Whether the open file was truncated, or written anew in place."""
        assert self._file is not None
        if self.position.head_bytes:
            return not _holds(self._file, self.position)
        return os.fstat(self._file.fileno()).st_size > 0 and self._unread_generation() is not None

    def _renamed(self) -> bool:
        """Whether the path holds another file now. While it holds none, the renamed one is still written to."""
        try:
            return self._path.stat().st_ino != self.position.inode
        except FileNotFoundError:
            return False


_ROTATED = re.compile(r"[._-]\d[\dTZ.:_-]*|\.old")


def is_rotated(path: str, log: str) -> bool:
    """Whether ``path`` is called as a rotated copy of ``log`` is: ``server.log.1``, ``server.log-20261201``."""
    return path.startswith(log) and _ROTATED.fullmatch(path[len(log) :]) is not None


def _is_of(path: Path, position: Position) -> bool:
    """Whether ``path`` holds what was read up to ``position``: the same head, and no shorter."""
    try:
        with path.open("rb") as file:
            return _holds(file, position)
    except OSError:
        return False


def _holds(file: BinaryIO, position: Position) -> bool:
    if os.fstat(file.fileno()).st_size < position.offset:
        return False
    file.seek(0)
    return _hash(file.read(position.head_bytes)) == position.head


def _hash(head: bytes) -> str:
    return blake2b(head, digest_size=8).hexdigest()
