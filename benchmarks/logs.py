"""Reading a log of an SGLang server at work, beside Debian's mtail on the same file.

mtail counts 60 signatures. Ours is measured twice: finding all signatures, which is the same work, and the whole
reader, which makes a window of every decode line as well.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

import re2

from acceptance.facts import Subject
from benchmarks.processes import Missing
from benchmarks.report import heading, table, verdict
from collectors.engines import engines
from collectors.logfile import CHUNK_BYTES
from collectors.reading import State, Text
from collectors.scan import LineFinder
from collectors.sglang.lines import split_prefix
from collectors.signatures import Signature, signatures
from collectors.unwrap import unwrap

TIMES_FASTER = 15.0
PEER_SIGNATURES = 60
SHARES = {"Decode batch": 0.55, "Prefill batch": 0.15, 'HTTP/1.1"': 0.30}
LINES_BETWEEN_MESSAGES = 5_000
LINES_A_SECOND = 50
VARIANTS = 20_000

_FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures"
_DECIMAL = re.compile(r"\d+\.\d\d(?= |,|$)")
_NOW = 1_800_000_000.0


def run(options: Namespace) -> None:
    """Print lines a CPU second of each, and the ratios."""
    heading(f"logs: {options.lines:,} lines of an SGLang server (decode 55 %, prefill 15 %, HTTP 30 %)")
    with tempfile.TemporaryDirectory(prefix="draftgauge-benchmark-") as folder:
        path = Path(folder, "server.log")
        _write(path, options.lines)
        counted = _chosen()
        found, finding = _find(path)
        windows, reading = _read(path)
        rows: list[tuple[str, int, float, float]] = [
            ("draftgauge, all signatures found", found.total(), finding, options.lines / finding),
            (f"draftgauge, the whole reader ({windows:,} windows)", found.total(), reading, options.lines / reading),
        ]
        if shutil.which("mtail") is None:
            table(("", "matches", "CPU s", "lines a CPU second"), rows)
            raise Missing("mtail (apt-get install mtail)")
        peer, counting = _mtail(path, counted)
        rows.append((f"mtail, {PEER_SIGNATURES} signatures counted", peer, counting, options.lines / counting))
    table(("", "matches", "CPU s", "lines a CPU second"), rows)
    ours = sum(found[signature.id] for signature in counted)
    print(f"\nOf the {PEER_SIGNATURES} signatures of mtail's program: {ours} matches by ours, {peer} by mtail.")
    verdict("Times faster than mtail, the same work", counting / finding, TIMES_FASTER, at_least=True)
    verdict("Times faster than mtail, the whole reader", counting / reading, 1.0, at_least=True)


def _write(path: Path, lines: int) -> None:
    """Real lines with varied figures, and now and then a message of those that signatures are for."""
    chance = random.Random(3)
    pool = _pool(chance)
    messages = (_FIXTURES / "sglang" / "fallback_lines_rendered.log").read_text().splitlines()
    with path.open("w") as file:
        for number in range(lines):
            turn, rest = divmod(number, LINES_BETWEEN_MESSAGES)
            line = messages[turn % len(messages)] if rest == LINES_BETWEEN_MESSAGES - 1 else chance.choice(pool)
            seconds = number // LINES_A_SECOND
            clock = f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            file.write(f"[2026-12-{1 + seconds // 86400:02d} {clock}{line[len('[2026-12-01 00:00:00') :]}\n")


def _pool(chance: random.Random) -> list[str]:
    paths = [*_FIXTURES.glob("sglang/serverlog_*.log"), *_FIXTURES.glob("real/sglang/*/server.log.gz")]
    lines = [line for path in sorted(paths) for line in _text(path).splitlines() if line.startswith("[20")]
    kinds = {
        mark: [line for line in lines if mark in line and (mark != "Decode batch" or "accept len" in line)]
        for mark in SHARES
    }
    chosen = chance.choices(list(SHARES), list(SHARES.values()), k=VARIANTS)

    def varied(line: str) -> str:
        return _DECIMAL.sub(lambda figure: f"{float(figure[0]) * chance.uniform(1.0, 1.5):.2f}", line)

    return [varied(chance.choice(kinds[mark])) for mark in chosen]


def _text(path: Path) -> str:
    body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return body.decode("utf-8", "replace")


def _chunks(path: Path) -> Iterator[bytes]:
    """Whole lines in pieces as the service reads them."""
    with path.open("rb") as file:
        while body := file.read(CHUNK_BYTES):
            whole = body.rfind(b"\n") + 1
            file.seek(whole - len(body), os.SEEK_CUR)
            yield body[:whole]


def _find(path: Path) -> tuple[Counter[str], float]:
    """How often each signature stands in the log, and the CPU seconds it took."""
    matcher = signatures("sglang")
    finder = LineFinder(matcher.literals)
    found: Counter[str] = Counter()
    began = process_time()
    for body in _chunks(path):
        for _, line, literals in finder.find(body):
            match = matcher.match(split_prefix(unwrap(line).text)[1], literals)
            if match is not None:
                found[match.signature.id] += 1
    return found, process_time() - began


def _read(path: Path) -> tuple[int, float]:
    """Windows that the reader makes of the log, and the CPU seconds it took."""
    reader, subject = engines()["sglang"].logs, Subject("target", "group")
    state: State = {}
    offset = windows = 0
    began = process_time()
    for body in _chunks(path):
        state, reading = reader.feed(subject, state, Text(body, _NOW, offset))
        offset += len(body)
        windows += len(reading.windows)
    return windows, process_time() - began


def _chosen() -> list[Signature]:
    """Signatures that mtail can have: its patterns are those of RE2."""
    patterns = [each for each in signatures("sglang").signatures.values() if each.pattern and _is_re2(each.pattern)]
    return patterns[:PEER_SIGNATURES]


def _is_re2(pattern: str) -> bool:
    try:
        re2.compile(pattern)
    except re2.error:
        return False
    return True


def _mtail(path: Path, counted: list[Signature]) -> tuple[int, float]:
    """Matches that mtail counts on one core, and its CPU seconds."""
    program = path.with_suffix(".mtail")
    rules = [(each.id.lower().replace("-", "_"), each.pattern.replace("/", r"\/")) for each in counted]
    program.write_text("".join(f"counter {name}\n/{pattern}/ {{\n  {name}++\n}}\n" for name, pattern in rules))
    before = getrusage(RUSAGE_CHILDREN)
    done = subprocess.run(
        ["mtail", "--one_shot", "--progs", str(program), "--logs", str(path), "--logtostderr"],
        env={**os.environ, "GOMAXPROCS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    after = getrusage(RUSAGE_CHILDREN)
    metrics = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
    values = [value for kinds in metrics.values() for kind in kinds for value in kind.get("LabelValues") or ()]
    matches = sum(value["Value"].get("Value", 0) for value in values)
    return matches, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
