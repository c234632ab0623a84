from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from app.config import Config, load

Write = Callable[..., Config]


@pytest.fixture
def config_of(tmp_path: Path) -> Write:
    """The configuration of a text, as file ``draftgauge.yaml``."""

    def configured(
        text: str, environment: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
    ) -> Config:
        path = tmp_path / "draftgauge.yaml"
        path.write_text(text)
        return load(path, overrides, environment or {})

    return configured
