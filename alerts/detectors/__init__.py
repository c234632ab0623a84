"""Detectors: pure judges of evidence. A new one is a module of this folder with a ``DETECTOR``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Literal

from alerts.evidence import Evidence
from alerts.limits import Limits
from alerts.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Detector:
    """A judge of one kind of fault, for any number of entries of findings.yaml.

    about        ``source``: every source is judged on its own, for the target as a whole, its ranks and categories.
                 ``target``: judged once, from what all its surfaces show
    judge        the verdict on evidence; pure, may raise
    thresholds   names that an entry must give
    optional     names that an entry or an override may give
    live         means something only while time passes: not asked about a bundle of files
    """

    name: str
    about: Literal["source", "target"]
    judge: Callable[[Evidence, Limits], Verdict]
    thresholds: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    live: bool = False


@cache
def detectors() -> Mapping[str, Detector]:
    """Name -> detector, found by looking through this folder."""
    found: dict[str, Detector] = {}
    for module in iter_modules(__path__):
        detector = getattr(import_module(f"{__name__}.{module.name}"), "DETECTOR", None)
        if isinstance(detector, Detector):
            found[detector.name] = detector
    return MappingProxyType(found)
