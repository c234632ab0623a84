"""The engines that can be read. A new engine is one folder with an ``ENGINE``; nothing else names engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

import collectors
from collectors.document import Object
from collectors.reading import Reader
from collectors.records import Record


@dataclass(frozen=True, slots=True)
class EngineReaders:
    """Everything that reads one engine.

    name        as in ``Series.engine``
    families    literal prefixes of metric names that only this engine's pages have (b"sglang:", b"vllm:", ...)
    metrics     reader of its metrics page
    logs        reader of its log
    documents   path on the server -> reader of the JSON there (``/server_info``, ``/version``); 404 is normal
    requests    reader of per-request results (response bodies, JSON lines)
    records     the results in one such document; raises ``Contradiction``
    log_marks   literals that only this engine's log has
    """

    name: str
    families: tuple[bytes, ...]
    metrics: Reader
    logs: Reader
    documents: Mapping[str, Reader]
    requests: Reader
    records: Callable[[Object], Iterator[Record]]
    log_marks: tuple[bytes, ...] = ()


@cache
def engines() -> Mapping[str, EngineReaders]:
    """Name -> readers, found by looking for packages of this folder that define ``ENGINE``."""
    found: dict[str, EngineReaders] = {}
    for module in iter_modules(collectors.__path__):
        if module.ispkg:
            engine = getattr(import_module(f"collectors.{module.name}"), "ENGINE", None)
            if isinstance(engine, EngineReaders):
                found[engine.name] = engine
    return MappingProxyType(found)


def engine_of(page: bytes, likely: EngineReaders | None = None) -> str | None:
    """Whose metrics page this is, by the families on it; None where no engine's are. ``likely`` is tried first."""
    for engine in engines().values() if likely is None else (likely, *engines().values()):
        if any(page.startswith(prefix) or b"\n" + prefix in page for prefix in engine.families):
            return engine.name
    return None


def engine_of_log(lines: bytes) -> str | None:
    """Whose log this is, by literals in it; None where it has none yet."""
    for engine in engines().values():
        if any(mark in lines for mark in engine.log_marks):
            return engine.name
    return None
