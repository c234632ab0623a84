from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from alerts.notify.registry import kinds
from app.config import Config

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def sections_in(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The section that a type holds, and how it is written behind the key."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    listed = "[]" if get_origin(annotation) is tuple else ""
    for inner in get_args(annotation):
        model, suffix = sections_in(inner)
        if model is not None:
            return model, listed + suffix
    return None, ""


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        section, suffix = sections_in(field.annotation)
        if section is None:
            yield prefix + (field.alias or name), field
        else:
            yield from keys(section, f"{prefix}{name}{suffix}.")


def shown(default: Any) -> str:
    if default is None or default == () or default == {}:
        return ""
    if isinstance(default, bool):
        return f"`{default}`".lower()
    if isinstance(default, float):
        for unit, seconds in (("d", 86400), ("h", 3600), ("m", 60)):
            if default % seconds == 0:
                return f"`{default / seconds:g}{unit}`"
        return f"`{default:g}s`"
    return f"`{default}`"


def expected_rows() -> list[str]:
    return [
        f"| `{key}` | {'required' if field.is_required() else shown(field.get_default(call_default_factory=True))} "
        f"| {field.description} |"
        for key, field in keys(Config)
    ]


def test_every_key_is_documented_as_it_is() -> None:
    (section,) = re.findall(r"^## Keys\n(.*?)^## ", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    assert re.findall(r"^\| `.*$", section, re.MULTILINE) == expected_rows(), "\n".join(expected_rows())


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_every_kind_of_channel_is_documented(kind: str) -> None:
    text = (DOCS.parent / "alerting.md").read_text()
    (section,) = re.findall(rf"^### `{kind}`\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    settings: Any = kinds()[kind]
    assert is_dataclass(settings)
    for field in fields(settings):
        assert f"| `{field.name}` |" in section


def test_the_examples_can_be_used(config_of: Any) -> None:
    examples = re.findall(r"^```yaml\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) >= 2
    for example in examples:
        names = re.findall(r"\$\{(\w+)\}", example)
        config_of(example, {name: f"https://hooks.slack.example/services/T/B/{name}" for name in names})
