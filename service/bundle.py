"""A support bundle: what an operator attached, sorted into the surfaces that readers read."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from acceptance.facts import FactValue
from collectors.engines import engine_of, engine_of_log

Kind = Literal["log", "metrics", "document", "launch", "operator", "unknown"]

FILE_LIMIT_BYTES = UNPACKED_LIMIT_BYTES = 2 * 1024**3
"""A larger file is left out, and that is said."""

LARGEST_NUMBER = 1e12
"""Of what an operator knows, nothing is more."""

NOT_READ = re.compile(r"\.(?:png|jpe?g|gif|pdf|zip|tar|tgz|zst|xz|bz2|so|bin|safetensors|pt|pkl|pyc)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Attachment:
    """One file of a bundle. ``modified`` is when it was written, unix seconds: log times without a year need it."""

    path: Path
    name: str
    kind: Kind
    body: bytes
    modified: float


@dataclass(frozen=True, slots=True)
class Operator:
    """What the operator knows beside the files (``bundle.json``).

    facts               laid over what was asked for at launch, under what the server itself says
    min_windows         so many busy windows are enough evidence
    baseline_acc_len    the operator's own normal value
    category            category of all traffic; ``category_by_file``: input_NAME.log is the category NAME
    seconds_between     from one metrics page to the next, by their place (t0 to t1, t1 to t2, ...)
    """

    facts: Mapping[str, FactValue] = field(default_factory=dict[str, FactValue])
    min_windows: int | None = None
    baseline_acc_len: float | None = None
    category: str | None = None
    category_by_file: bool = False
    seconds_between: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files about one server."""

    name: str
    files: tuple[Attachment, ...]
    operator: Operator
    problems: tuple[str, ...] = ()

    def of(self, *kinds: Kind) -> Iterator[Attachment]:
        """The files of these kinds, in the order of their names."""
        return (file for file in self.files if file.kind in kinds)


def bundles(paths: Sequence[Path]) -> list[Bundle]:
    """One bundle a directory, and one of all files named by themselves. Raises ``FileNotFoundError``."""
    loose: list[Path] = []
    directories: list[Path] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or directory")
        (directories if path.is_dir() else loose).append(path)
    found = [bundle for directory in directories for bundle in _of_directory(directory)]
    if loose:
        name = loose[0].stem if len(loose) == 1 else loose[0].absolute().parent.name
        found.insert(0, _bundle(name, loose))
    return found


def _of_directory(directory: Path) -> Iterator[Bundle]:
    """One of each folder that has files; a folder that is linked to is read once."""
    inner = sorted(path for path in directory.rglob("*") if path.is_dir())
    for folder in dict.fromkeys(path.resolve() for path in (directory, *inner)):
        try:
            files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
        except OSError as error:
            yield Bundle(folder.name, (), Operator(), (str(error),))
            continue
        if files:
            yield _bundle(folder.name, files)


def _bundle(name: str, paths: Iterable[Path]) -> Bundle:
    files: list[Attachment] = []
    operator = Operator()
    problems: list[str] = []
    for path in paths:
        try:
            file = _attachment(path)
        except (OSError, EOFError, zlib.error) as error:
            problems.append(f"{path.name}: {error}")
            continue
        if file is None:
            problems.append(f"{path.name}: not read, larger than {FILE_LIMIT_BYTES} bytes")
        elif file.kind == "operator":
            try:
                operator = parse_operator(file.body)
            except ValueError as error:
                problems.append(f"{path.name}: {error}")
        else:
            files.append(file)
    return Bundle(name, tuple(files), operator, tuple(problems))


def _attachment(path: Path) -> Attachment | None:
    status = path.stat()
    if status.st_size > FILE_LIMIT_BYTES:
        return None
    name, body = path.name, b""
    if not NOT_READ.search(name):
        body = path.read_bytes()
        if name.endswith(".gz"):
            name, body = name[:-3], _unpacked(body)
            if len(body) > UNPACKED_LIMIT_BYTES:
                return None
    return Attachment(path, name, _kind(name.lower(), body), body, status.st_mtime)


def _unpacked(body: bytes) -> bytes:
    """A byte too many where it is more than the limit: a megabyte may hold a gigabyte of nothing."""
    with gzip.open(BytesIO(body)) as packed:
        return packed.read(UNPACKED_LIMIT_BYTES + 1)


_LAUNCH = re.compile(r"(?:launch|args|cmd|command|env)[\w.-]*\.(?:txt|sh|env)$")


def _kind(name: str, body: bytes) -> Kind:
    """By what the file holds; by its name where the content does not tell."""
    if name == "bundle.json":
        return "operator"
    if _LAUNCH.search(name):
        return "launch"
    if engine_of(body) is not None and engine_of(_first_lines(body)) is not None:
        return "metrics"
    if body.lstrip()[:1] == b"{" and not name.endswith(".log"):
        return "document"
    if name.endswith(".log") or engine_of_log(body) is not None:
        return "log"
    return "unknown"


def _first_lines(body: bytes) -> bytes:
    """The first lines that a metrics page would have: those of a log are no samples."""
    lines = (line for line in body.splitlines() if line and not line.startswith(b"#"))
    return b"\n".join(line for line, _ in zip(lines, range(2000), strict=False))


_FACTS: Mapping[str, str] = {
    "engine_version": "version",
    "num_speculative_tokens": "k",
    "role": "role",
    "dp": "data_parallel",
    "max_running_requests": "max_running_requests",
    "speculative": "speculative",
}
"""Key of bundle.json -> fact."""


def parse_operator(body: bytes) -> Operator:
    """Read bundle.json; raises ``ValueError`` saying what is wrong with it."""
    try:
        given: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError("not a JSON object")
    known = cast("dict[str, Any]", given)
    facts = {fact: known[key] for key, fact in _FACTS.items() if _is_fact(known.get(key))}
    if "k" not in facts:
        for key in ("num_draft_tokens", "max_acc_len"):
            if (limit := _number(known, key)) is not None:
                facts["k"] = int(limit) - 1
                break
    windows = _number(known, "min_windows")
    category = known.get("category")
    return Operator(
        facts=facts,
        min_windows=None if windows is None else int(windows),
        baseline_acc_len=_number(known, "baseline_acc_len"),
        category=category if isinstance(category, str) else None,
        category_by_file=bool(known.get("category_by_file")),
        seconds_between=_seconds_between(known.get("timing")),
    )


def _is_fact(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and abs(value) <= LARGEST_NUMBER)


def _seconds_between(timing: object) -> tuple[float, ...]:
    if not isinstance(timing, dict):
        return ()
    given = cast("dict[str, Any]", timing)
    spans: list[float] = []
    while (seconds := _number(given, f"t{len(spans) + 1}_minus_t{len(spans)}_s")) is not None:
        spans.append(seconds)
    return tuple(spans)


def _number(given: Mapping[str, Any], key: str) -> float | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key}: not a number")
    if not 0.0 <= value <= LARGEST_NUMBER:
        raise ValueError(f"{key}: not from 0 to {LARGEST_NUMBER:g}")
    return float(value)
