"""Categories and posted records as they are configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from acceptance.categories import Categories, Rule, Span, compiled
from app.fields import Flag, Names, Number, Section
from collectors.records import LONGEST_LABEL


def _pattern(value: str) -> str:
    compiled(value)
    return value


def _own_name(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must not hold control characters")
    return value


def _lower(value: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    lowered = {name.lower(): values for name, values in value.items()}
    if len(lowered) != len(value):
        raise ValueError("names a header twice: upper and lower case are one")
    return lowered


class SpanEntry(Section):
    """Numbers from one to another."""

    at_least: Number | None = Field(default=None, description="this and above")
    below: Number | None = Field(default=None, description="under this")

    @model_validator(mode="after")
    def _holds_something(self) -> SpanEntry:
        if self.at_least is not None and self.below is not None and self.at_least >= self.below:
            raise ValueError("holds no number: at_least must be under below")
        return self

    @property
    def span(self) -> Span:
        """As rules take it."""
        return Span(self.at_least, self.below)


class Requests(Section):
    """Which requests a rule is about: all of what is given must hold (``acceptance.categories.Rule``)."""

    header: Annotated[Mapping[str, Names], AfterValidator(_lower)] = Field(
        default_factory=dict[str, tuple[str, ...]], description="name of a header -> its value, or one of several"
    )
    model: Names = Field(default=(), description="model that was asked for")
    api_key: Names = Field(default=(), description="alias of the API key (`api_key_alias` of a record)")
    lora: Names = Field(default=(), description="LoRA adapter")
    route: Names = Field(default=(), description="route that took it (`route` of a record)")
    structured: Flag | None = Field(
        default=None, description="whether the output is held to a grammar, a schema or a `response_format`"
    )
    tools: Flag | None = Field(default=None, description="whether tools were offered")
    temperature: SpanEntry | None = Field(default=None, description="temperature")
    prompt_tokens: SpanEntry | None = Field(default=None, description="length of the prompt")
    prompt: Annotated[str, StringConstraints(min_length=1), AfterValidator(_pattern)] | None = Field(
        default=None, description="pattern (RE2) to be found in the prompt, which is not kept"
    )


class CategoryEntry(Section):
    """A category and its requests."""

    name: Annotated[
        str,
        StringConstraints(min_length=1, max_length=LONGEST_LABEL, strip_whitespace=True),
        AfterValidator(_own_name),
    ] = Field(description="the category; several rules may name the same")
    where: Requests = Field(
        default=Requests(), description="which requests; every one that no rule before took where it is not given"
    )

    @property
    def rule(self) -> Rule:
        """As ``Categories`` takes it."""
        where = self.where
        return Rule(
            name=self.name,
            headers=where.header,
            model=where.model,
            api_key=where.api_key,
            lora=where.lora,
            route=where.route,
            structured=where.structured,
            tools=where.tools,
            temperature=None if where.temperature is None else where.temperature.span,
            prompt_tokens=None if where.prompt_tokens is None else where.prompt_tokens.span,
            prompt=where.prompt,
        )


class Records(Section):
    """What is taken of posted records."""

    any_target: Flag = Field(
        default=False, description="take posted records of targets that are not listed too, up to 1000 of them"
    )


def categories_of(entries: tuple[CategoryEntry, ...]) -> Categories:
    """The rules in the order of the file."""
    return Categories([entry.rule for entry in entries])
