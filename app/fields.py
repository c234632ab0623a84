"""How values of the configuration are written: durations, names, paths, secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
)

from acceptance.query import BadQuery, parse_duration

LONGEST_SECRET_FILE_BYTES = 4096


def _seconds(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        return parse_duration("", str(value))
    except BadQuery:
        raise ValueError("must be a duration above 0 (say 15s, 5m, 30d, or seconds)") from None


def _number(value: object) -> object:
    """Text from the environment as the number it stands for."""
    if not isinstance(value, str) or not re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", value, re.ASCII):
        return value
    return float(value) if "." in value else int(value)


def _flag(value: object) -> object:
    """Text from the environment as what it says."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _line(value: SecretStr) -> SecretStr:
    text = value.get_secret_value().strip()
    if not text or not text.isascii() or not text.isprintable():
        raise ValueError("must be one line of ASCII characters")
    return SecretStr(text)


def _path(value: object, info: ValidationInfo) -> object:
    """Text is relative to ``base`` of the validation's context (the directory of the file); a ``Path`` is as it is."""
    context = cast("Mapping[str, Path]", info.context or {})
    return Path(context.get("base", ""), Path(value).expanduser()) if isinstance(value, str) else value


def _paths(value: object, info: ValidationInfo) -> object:
    items = cast("list[object]", value if isinstance(value, list) else [value])
    return tuple(str(_path(item, info)) if isinstance(item, str | Path) else item for item in items)


def _content(value: object, info: ValidationInfo) -> object:
    path = _path(value, info)
    if not isinstance(path, Path):
        return path
    try:
        with path.open(encoding="utf-8") as file:
            return SecretStr(file.read(LONGEST_SECRET_FILE_BYTES))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ValueError(f"{path} cannot be read: {reason}") from None


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must not hold control characters")
    return value


Name = Annotated[
    str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True), AfterValidator(_printable)
]
Names = Annotated[tuple[Name, ...], BeforeValidator(_list), Field(strict=False)]
Categories = Annotated[
    tuple[Annotated[str, StringConstraints(max_length=200), AfterValidator(_printable)], ...],
    BeforeValidator(_list),
    Field(strict=False),
]
Directory = Annotated[Path, BeforeValidator(_path)]
Paths = Annotated[tuple[Name, ...], BeforeValidator(_paths), Field(strict=False)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
SecondsFrom0 = Annotated[float, BeforeValidator(_seconds), Field(ge=0, allow_inf_nan=False)]
"""A time that may be 0."""
Whole = Annotated[int, BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
SecretLine = Annotated[SecretStr, AfterValidator(_line)]
SecretFile = Annotated[SecretStr, BeforeValidator(_content), AfterValidator(_line)]
"""Written as a path; the value is what the file holds."""


class Section(BaseModel):
    """Part of the configuration: unknown keys are refused, values are never quoted in errors."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True
    )
