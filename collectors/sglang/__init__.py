"""Readers of SGLang."""

from __future__ import annotations

from collectors.engines import EngineReaders
from collectors.sglang.logs import LogReader
from collectors.sglang.metrics import MetricsReader
from collectors.sglang.page import PREFIXES
from collectors.sglang.requests import RequestReader, records_of
from collectors.sglang.server_info import ServerInfoReader

ENGINE = EngineReaders(
    name="sglang",
    families=tuple(prefix.encode() for prefix in PREFIXES),
    metrics=MetricsReader(),
    logs=LogReader(),
    documents={"/server_info": ServerInfoReader()},
    requests=RequestReader(),
    records=records_of,
    log_marks=(b"Decode batch", b"Prefill batch", b"server_args=", b"/sglang/", b"SGLang"),
)
