"""Reader of vLLM's per-request results (``--per-request-spec-decode-metrics``, since 0.29)."""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.facts import Subject
from collectors.document import Object, inner
from collectors.reading import Reading, State, Text
from collectors.records import SURFACE, Record, count, histogram, label, moment, read_records

MILLISECOND = 0.001


class RequestReader:
    """Reads response bodies and the last chunk of a stream."""

    surface = SURFACE

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """A JSON document, or lines of JSON."""
        return state, read_records(subject, text, "vllm", records_of)


def records_of(document: Object) -> Iterator[Record]:
    """The results in a document; raises ``Contradiction``."""
    metrics = inner(document, "metrics")
    spec = inner(metrics, "speculative_decoding")
    created = moment(document.get("created"))
    yield Record(
        steps=count(spec, "num_spec_steps") or 0,
        accepted=count(spec, "num_accepted_draft_tokens"),
        proposed=count(spec, "num_draft_tokens"),
        histogram=histogram(spec, "acceptance_histogram"),
        k=count(spec, "num_spec_tokens"),
        id=label(document.get("id")),
        start=created,
        end=None if created is None else created + _duration(metrics),
        category=label(document.get("category")),
        prompt_tokens=count(inner(document, "usage"), "prompt_tokens"),
    )


def _duration(metrics: Object) -> float:
    """Seconds from arrival to the last token, where ``--enable-per-request-metrics`` tells them; else 0."""
    parts = [metrics.get("time_to_first_token_ms"), metrics.get("generation_time_ms")]
    return sum(part for part in parts if isinstance(part, int | float) and part >= 0) * MILLISECOND
