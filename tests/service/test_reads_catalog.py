from __future__ import annotations

import threading
from typing import Any

from acceptance.facts import Fact
from acceptance.health import Health
from collectors.reading import Reading, Rejected
from collectors.sink import Read
from collectors.target import Target
from service.catalog import REMOVED_KEPT_SECONDS, Catalog, TargetStatus

A = Target("a", "http://a", "g", category_label="kind")


def read(at: float = 10.0, surface: str = "metrics", state: dict[str, Any] | None = None, **reading: Any) -> Read:
    return Read("a", surface, at, state or {}, Reading(**reading))


def status(catalog: Catalog) -> TargetStatus:
    found = catalog.get("a")
    assert found is not None
    return found


def shown(catalog: Catalog) -> list[tuple[str, float | None]]:
    return [(each.target.name, each.removed_at) for each in catalog.statuses()]


def fact(name: str, value: Any, at: float = 10.0) -> Fact:
    return Fact("a", name, value, "server_info", at)


def test_a_subject_knows_what_was_learned_before_and_since() -> None:
    catalog = Catalog([A], {"a": {"k": fact("k", 3), "engine": fact("engine", "sglang")}, "z": {}})
    catalog.observe(read(facts=(fact("k", 5, 20.0), fact("version", "0.5.23", 20.0))))
    subject = catalog.subject(A)
    assert (subject.target, subject.group, subject.category_label) == ("a", "g", "kind")
    assert dict(subject.facts) == {"k": 5, "engine": "sglang", "version": "0.5.23"}
    assert status(catalog).fact("k") == 5
    assert status(catalog).fact("drafter") is None


def test_older_news_undo_nothing() -> None:
    catalog = Catalog([A])
    catalog.observe(read(facts=(fact("k", 5, 20.0),), health=(Health("a", "metrics", 20.0, True),)))
    catalog.observe(read(facts=(fact("k", 3, 10.0),), health=(Health("a", "metrics", 10.0, False),)))
    assert status(catalog).fact("k") == 5
    assert status(catalog).looks["metrics"].up


def test_looks_by_surface_and_when_each_told_something() -> None:
    catalog = Catalog([A])
    catalog.observe(read(10.0, health=(Health("a", "metrics", 10.0, True, running=2.0),)))
    catalog.observe(read(20.0, health=(Health("a", "metrics", 20.0, False, "ConnectError: refused"),)))
    catalog.observe(read(15.0, "log:/a"))
    found = status(catalog)
    assert found.look is not None
    assert (found.look.up, found.look.at, found.told_at) == (False, 20.0, 10.0)
    assert (dict(found.read_at), found.has_log) == ({"metrics": 10.0, "log:/a": 15.0}, True)


def test_a_log_that_cannot_be_read_is_none() -> None:
    catalog = Catalog([A])
    catalog.observe(read(15.0, "log:/a", health=(Health("a", "log:/a", 15.0, False, "FileNotFoundError: no"),)))
    assert not status(catalog).has_log


def test_a_target_known_by_its_logs_only() -> None:
    catalog = Catalog([Target("a", None, logs=("/a", "/b"))])
    assert (status(catalog).look, status(catalog).told_at) == (None, None)
    catalog.observe(read(10.0, "log:/a", health=(Health("a", "log:/a", 10.0, True),)))
    catalog.observe(read(20.0, "log:/b", health=(Health("a", "log:/b", 20.0, True),)))
    found = status(catalog)
    assert found.look is not None
    assert (found.look.surface, found.told_at) == ("log:/b", 20.0)


def test_lives_and_rejected_input() -> None:
    catalog = Catalog([A])
    catalog.observe(read(state={"incarnation": 7}, rejected=(Rejected("x", "y", 2), Rejected("z", "y"))))
    catalog.observe(
        read(
            surface="log:/a",
            state={"position": {"offset": 9}, "reader": {"incarnation": 2}},
            rejected=(Rejected("x", "y"),),
        )
    )
    catalog.observe(read(state={"incarnation": "8"}))
    assert dict(status(catalog).incarnations) == {"metrics": "8", "log:/a": "2"}
    assert status(catalog).rejected == 4


def test_what_is_told_of_a_stranger_is_ignored() -> None:
    catalog = Catalog([A])
    catalog.observe(Read("stranger", "metrics", 1.0, {}, Reading()))
    assert [each.target.name for each in catalog.statuses()] == ["a"]
    assert catalog.subject(Target("stranger", None)).facts == {}


def test_targets_come_and_go() -> None:
    catalog = Catalog([A, Target("b", "http://b")])
    catalog.observe(read(facts=(fact("k", 3),)))
    catalog.replace([Target("a", "http://elsewhere"), Target("c", "http://c")], at=100.0)
    assert shown(catalog) == [
        ("a", None),
        ("b", 100.0),
        ("c", None),
    ]
    assert (status(catalog).target.url, status(catalog).fact("k")) == ("http://elsewhere", 3)
    catalog.replace([A], at=200.0)
    assert shown(catalog) == [
        ("a", None),
        ("b", 100.0),
        ("c", 200.0),
    ]
    catalog.replace([A], at=100.0 + REMOVED_KEPT_SECONDS + 1)
    assert [each.target.name for each in catalog.statuses()] == ["a", "c"]
    catalog.replace([A, Target("c", "http://c")], at=5000.0)
    assert [each.removed_at for each in catalog.statuses()] == [None, None]


def test_threads_lose_nothing() -> None:
    catalog = Catalog([A])

    def tell(number: int) -> None:
        for index in range(200):
            catalog.observe(read(facts=(fact(f"f{number}-{index}", index),), rejected=(Rejected("x", "y"),)))

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(status(catalog).facts) == 800
    assert status(catalog).rejected == 800
