"""Readers of vLLM."""

from __future__ import annotations

from collectors.engines import EngineReaders
from collectors.vllm.logs import LogReader
from collectors.vllm.metrics import PREFIXES, MetricsReader
from collectors.vllm.requests import RequestReader, records_of
from collectors.vllm.server_info import ServerInfoReader
from collectors.vllm.version import VersionReader

ENGINE = EngineReaders(
    name="vllm",
    families=tuple(prefix.encode() for prefix in PREFIXES),
    metrics=MetricsReader(),
    logs=LogReader(),
    documents={"/version": VersionReader(), "/server_info?config_format=json": ServerInfoReader()},
    requests=RequestReader(),
    records=records_of,
    log_marks=(b"SpecDecoding metrics:", b"Avg prompt throughput:", b"Avg prompt tput:", b"EngineCore", b"vLLM"),
)
