"""Reader of SGLang's per-request results: responses, request logs, exported request metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import orjson

from acceptance.facts import Subject
from collectors.document import Object, inner
from collectors.reading import Reading, State, Text
from collectors.records import SURFACE, Record, count, histogram, label, moment, objects_in, read_records


class RequestReader:
    """Reads ``/generate`` and OpenAI responses and stream chunks, ``--log-requests-format json`` lines, and the files
    of ``--export-metrics-to-file``.

    ``spec_accept_length`` is never used: it counts the token of the prefill (1.043 where nothing was accepted).
    """

    surface = SURFACE

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """A JSON document, or lines of JSON."""
        return state, read_requests(subject, text)


def read_requests(subject: Subject, text: Text) -> Reading:
    """What ``RequestReader`` reads; it has no state."""
    return read_records(subject, text, "sglang", records_of)


def records_of(document: Object) -> Iterator[Record]:
    """The results in a document; raises ``Contradiction``."""
    if "meta_info" in document:
        yield _record(inner(document, "meta_info"), document, document)
    elif "spec_verify_ct" in document:
        yield _record(document, document, _parameters(document))
    elif "out" in document:
        for out in objects_in(document["out"]):
            yield _record(inner(out, "meta_info"), document, inner(document, "obj"))
    elif "sglext" in document:
        for details in objects_in(inner(document, "sglext").get("spec_tokens_details")):
            yield _record(details, document, document)
    else:
        for choice in objects_in(document.get("choices")):
            yield _record(inner(choice, "meta_info"), document, document)


def _record(spec: Object, document: Object, request: Object) -> Record:
    """``spec``: the object with the counts; ``request``: the one with the labels, where there is one."""
    steps = count(spec, "spec_verify_ct") or 0
    accepted = count(spec, "spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
    completion = count(spec, "completion_tokens")
    latency = spec.get("e2e_latency")
    end = moment(
        spec.get("request_finished_ts"),
        spec.get("response_sent_to_client_ts"),
        document.get("timestamp"),
        document.get("created"),
    )
    start = moment(spec.get("request_received_ts"))
    if start is None and end is not None and isinstance(latency, int | float) and 0 <= latency < end:
        start = end - latency
    rank = spec.get("dp_rank")
    return Record(
        steps=steps,
        accepted=accepted,
        # The first token of a request comes from its prefill.
        emitted=None if completion is None else max(completion - 1, steps),
        proposed=count(spec, "spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num"),
        histogram=histogram(spec, "spec_correct_drafts_histogram", "spec_accept_histogram"),
        id=label(spec.get("id") or document.get("rid") or document.get("id")),
        start=start,
        end=end,
        rank=str(rank) if isinstance(rank, int) else None,
        category=label(document.get("category")),
        # A record that shows the request shows whether it was labelled.
        labels=inner(request, "custom_labels") if "custom_labels" in request else None,
        prompt_tokens=count(spec, "prompt_tokens") or count(inner(document, "usage"), "prompt_tokens"),
    )


def _parameters(document: Object) -> Object:
    """The request behind an exported record: JSON in a string."""
    text = document.get("request_parameters")
    try:
        parameters: Any = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        parameters = None
    return cast("Object", parameters) if isinstance(parameters, dict) else {}
