"""The exposition reader keeps what prometheus_client's parsers would, and is not thrown by what is malformed."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from collectors.exposition import MOST_REJECTED, Sample, read

FIXTURES = Path(__file__).parents[1] / "fixtures"
PAGES = sorted(
    str(path.relative_to(FIXTURES)).removesuffix(".gz")
    for path in FIXTURES.rglob("metrics*.txt*")
    if path.suffix in (".txt", ".gz")
)


def peer(page: bytes) -> list[Sample]:
    """What prometheus_client reads."""
    parse = openmetrics_families if page.endswith(b"# EOF\n") else text_families
    return [
        Sample(sample.name, sample.labels, float(sample.value))
        for family in parse(page.decode())
        for sample in family.samples
    ]


def comparable(samples: Iterable[Sample]) -> Counter[tuple[str, frozenset[tuple[str, str]], str]]:
    return Counter((sample.name, frozenset(sample.labels.items()), repr(sample.value)) for sample in samples)


@pytest.mark.parametrize("name", PAGES)
def test_every_recorded_page_reads_as_with_prometheus_client(name: str, fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes(name)
    expected = peer(page)

    found = read(page, {sample.name for sample in expected})

    assert found.rejected == ()
    assert comparable(found.samples) == comparable(expected)
    assert len(expected) == sum(1 for line in page.splitlines() if line.strip() and not line.startswith(b"#"))


def test_the_recorded_pages_are_there() -> None:
    assert len(PAGES) >= 70


@pytest.mark.parametrize("name", PAGES)
def test_only_the_names_asked_for_are_kept(name: str, fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes(name)
    expected = peer(page)
    wanted = sorted({sample.name for sample in expected if not sample.name.endswith("_bucket")})[::3]

    assert comparable(read(page, wanted).samples) == comparable(s for s in expected if s.name in wanted)


# Pieces of a label value as it stands on the page: escapes, and all that a sloppy reader would split at.
PIECES = st.sampled_from([r"\\", r"\"", r"\n", r"\q", "{", "}", ",", "=", " ", "#", "a", "Zß", "\t", "9", "x=1", "漢"])
LABEL_VALUES = st.lists(PIECES, max_size=6).map("".join)
LABEL_NAMES = st.sampled_from(["model_name", "engine", "le", "position", "a", "_b", "category"])
LABELS = st.dictionaries(LABEL_NAMES, LABEL_VALUES, max_size=4)
NUMBERS = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**18), 10**18).map(str),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1e3", "0", "1.50", "1.7e+09"]),
)
NAMES = st.sampled_from(["vllm:drafts", "vllm:drafts_total", "vllm:draft_tokens_total", "up", "sglang:spec_accept"])


def label_text(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


@st.composite
def text_pages(draw: st.DrawFn) -> bytes:
    """Prometheus text 0.0.4 with every liberty it allows: blanks, timestamps, comments, CRLF, no last newline."""
    lines: list[str] = []
    seen: set[tuple[str, str]] = set()
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["sample", "sample", "sample", "comment", "other", "blank"]))
        name = draw(NAMES)
        if kind == "blank":
            lines.append("")
        elif kind == "comment":
            lines.append(f'# HELP {name} counts {name}{{a="b"}} 7 and more')
        else:
            labels = draw(LABELS)
            series = (name if kind == "sample" else f"{name}_created", repr(sorted(labels.items())))
            if series in seen:
                continue
            seen.add(series)
            between, comma = draw(st.sampled_from(["", " "])), draw(st.sampled_from(["", ","])) if labels else ""
            braces = f"{between}{{{label_text(labels)}{comma}}}" if labels or draw(st.booleans()) else ""
            stamp = draw(st.sampled_from(["", " 1789000000123", "\t1789000000"]))
            blank = draw(st.sampled_from([" ", "  ", "\t"])) if not stamp else " "
            lines.append(f"{series[0]}{braces}{blank}{draw(NUMBERS)}{stamp}")
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(lines) + draw(st.sampled_from(["", end]))).encode()


@given(text_pages())
@settings(max_examples=200, deadline=None)
def test_any_text_page_reads_as_with_prometheus_client(page: bytes) -> None:
    expected = peer(page)

    found = read(page, {sample.name for sample in expected})

    assert found.rejected == ()
    assert comparable(found.samples) == comparable(expected)


@st.composite
def openmetrics_pages(draw: st.DrawFn) -> bytes:
    """OpenMetrics: counters with exemplars and ``_created``, gauges with any value, ``# EOF``."""
    lines: list[str] = []
    for name in draw(st.lists(NAMES.map(lambda name: name.removesuffix("_total")), unique=True, max_size=4)):
        counter = draw(st.booleans())
        lines += [
            f"# HELP {name} a text that names {name}_total 3",
            f"# TYPE {name} {'counter' if counter else 'gauge'}",
        ]
        groups = draw(st.lists(LABELS, max_size=3, unique_by=lambda labels: repr(sorted(labels.items()))))
        for labels in groups:
            braces = f"{{{label_text(labels)}}}" if labels else ""
            if not counter:
                lines.append(f"{name}{braces} {draw(NUMBERS)}")
                continue
            exemplar = draw(st.sampled_from(["", ' # {trace_id="ab c} {"} 1.0', " # {} 3 1789000000.5"]))
            lines.append(f"{name}_total{braces} {draw(st.integers(0, 10**15))}{exemplar}")
            if draw(st.booleans()):
                lines.append(f"{name}_created{braces} 1789000000.25")
    return "\n".join([*lines, "# EOF", ""]).encode()


@given(openmetrics_pages())
@settings(max_examples=200, deadline=None)
def test_any_openmetrics_page_reads_as_with_prometheus_client(page: bytes) -> None:
    expected = peer(page)

    found = read(page, {sample.name for sample in expected})

    assert found.rejected == ()
    assert comparable(found.samples) == comparable(expected)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_page_raises_nothing_and_invents_nothing(data: st.DataObject) -> None:
    page = bytearray(data.draw(text_pages()))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(page)))
        page[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    names = ["vllm:drafts", "vllm:drafts_total", "vllm:draft_tokens_total", "up", "sglang:spec_accept"]

    found = read(bytes(page), names)

    lines = [line.lstrip(b" \t") for line in bytes(page).split(b"\n")]
    for name in names:
        told = sum(sample.name == name for sample in found.samples)
        rejected = sum(item.count for item in found.rejected if item.where.endswith(f": {name}"))
        assert told + rejected <= sum(line.startswith(name.encode()) for line in lines)


PAGE = """\
# HELP drafts_total drafts_total{engine="0"} 1
# TYPE drafts_total counter
drafts_total{engine="0"} 5
drafts_total_more{engine="0"} 6
drafts{engine="0"} 7
drafts_created{engine="0"} 1.79e9
 drafts_total{engine="indented"} 8
"""


def test_longer_and_shorter_names_and_help_texts_are_not_samples() -> None:
    assert [sample.value for sample in read(PAGE.encode(), ["drafts_total"]).samples] == [5.0]


def test_a_page_that_is_indented_as_a_whole_is_read() -> None:
    page = b'    # TYPE drafts_total counter\n    drafts_total{engine="0"} 5\n\tdrafts_total{engine="1"} 6\n'
    assert [sample.value for sample in read(page, ["drafts_total"]).samples] == [5.0, 6.0]


def test_hostile_labels_are_unescaped() -> None:
    page = rb'x{a="C:\\dir\\n \"quoted\" } , {",b="Qwen 3.6 27B",c="line\nbreak"} 1.5e3 1789000000123' + b"\n"
    (sample,) = read(page, ["x"]).samples
    assert sample.labels == {"a": 'C:\\dir\\n "quoted" } , {', "b": "Qwen 3.6 27B", "c": "line\nbreak"}
    assert sample.value == 1500.0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'x{a="b"}', "not NAME"),
        (b'x{a="b" 1', "not NAME"),
        (b'x{a="b} 1', "not NAME"),
        (b"x{a=b} 1", "labels are not"),
        (b'x{a="b" c="d"} 1', "labels are not"),
        (b'x{9a="b"} 1', "labels are not"),
        (b'x{a="b",a="c"} 1', "label is given twice"),
        (b'x{a="b"} one', "not a number"),
        (b'x{a="b"} 1_000', "not a number"),
        (b'x{a="b"} 1 2 3', "not NAME"),
        (b'x{a="\xff"} 1', "not UTF-8"),
        (b'x{a="' + b"y" * 70_000 + b'"} 1', "longer than"),
        (b'x{a="sound"} 2', "series is given twice"),
    ],
)
def test_a_malformed_line_is_rejected_with_place_and_reason(line: bytes, reason: str) -> None:
    page = b'# TYPE x gauge\nx{a="sound"} 1\n' + line + b'\nx{a="also sound"} 3\n'

    found = read(page, ["x"])

    assert [sample.value for sample in found.samples] == [1.0, 3.0]
    (rejected,) = found.rejected
    assert rejected.where == "line 3: x"
    assert reason in rejected.reason


def test_rejections_are_counted_and_their_list_is_short() -> None:
    found = read(b"x{ oops\n" * 500, ["x"])
    assert len(found.rejected) == MOST_REJECTED
    assert sum(item.count for item in found.rejected) == 500


def test_special_values() -> None:
    values = [sample.value for sample in read(b'x{a="1"} NaN\nx{a="2"} +Inf\nx{a="3"} -Inf\n', ["x"]).samples]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


def test_labels_cannot_be_changed_by_who_reads_them() -> None:
    (sample,) = read(b'x{a="b"} 1\n', ["x"]).samples
    with pytest.raises(TypeError):
        sample.labels["a"] = "c"


def test_reading_the_wanted_is_far_faster_than_parsing_the_page(fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes("sglang/metrics_v0.5.23.dp8_attention.txt")
    text = page.decode()
    names = [f"sglang:{name}" for name in ("spec_accept_length", "spec_verify_calls_total", "generation_tokens_total")]
    names += ["sglang:num_running_reqs", "sglang:realtime_tokens_total", "sglang:cuda_graph_passes_total"]
    read(page, names)

    assert best(lambda: read(page, names)) * 25 < best(lambda: list(text_families(text)))


def best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of three runs: other work on the machine only ever slows one down."""
    times: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
