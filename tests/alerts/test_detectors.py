"""What each detector says about evidence built from sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from acceptance.counts import Counts, Spread
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.query import Sum
from alerts.detectors import quality
from alerts.verdicts import Clear, Finding, NotEnough

ASKED = {"speculative": True}
SIGNATURES = {"SG-DRAFT-ATTN-FALLBACK": "draft-attention-backend-fallback", "SG-ZOMBIE": "zombie-requests"}
SGLANG = {"engine": "sglang", "k": 7}
VLLM = {"engine": "vllm", "k": 7}


class TestDead:
    def test_one_window_of_500_steps_is_enough(self, build: Any, case: Any) -> None:
        found = case("dead-drafter").judge(build().windows([3.2, 3.1, 1.02], steps=500.0))
        assert isinstance(found, Finding)
        assert (found.severity, found.source, found.threshold, found.steps) == ("critical", "counter", 1.10, 500.0)
        assert found.value == pytest.approx(1.02)
        assert "3.15 before" in found.why

    def test_so_are_three_busy_windows_of_fewer_steps(self, build: Any, case: Any) -> None:
        windows = build().windows([3.2, 1.0, 1.0, 1.0], steps=40.0)
        assert isinstance(case("dead-drafter").judge(windows), Finding)
        assert isinstance(case("dead-drafter").judge(windows[:-1]), Clear)

    def test_three_windows_of_next_to_no_steps_are_not(self, build: Any, case: Any) -> None:
        assert isinstance(case("dead-drafter").judge(build().windows([1.0, 1.0, 1.0], steps=5.0)), NotEnough)

    def test_one_verify_call_is_no_evidence(self, build: Any, case: Any) -> None:
        for level in ("page", "look"):
            assert isinstance(case("dead-drafter", level).judge(build().windows([1.0], steps=1.0)), NotEnough)

    def test_exactly_at_the_threshold_is_dead(self, build: Any, case: Any) -> None:
        assert isinstance(case("dead-drafter").judge(build().windows([1.10], steps=1000.0)), Finding)
        assert isinstance(case("dead-drafter").judge(build().windows([1.11], steps=1000.0)), Clear)

    def test_between_the_thresholds_it_is_not_recovered(self, build: Any, case: Any) -> None:
        assert case("dead-drafter").judge(build().windows([1.15], steps=1000.0)).recovered is False
        assert case("dead-drafter").judge(build().windows([1.25], steps=1000.0)).recovered is True

    def test_the_healthy_past_does_not_delay_it(self, build: Any, case: Any) -> None:
        assert isinstance(case("dead-drafter").judge(build().windows([3.2] * 50 + [1.0], steps=2000.0)), Finding)

    def test_idle_is_no_evidence(self, build: Any, case: Any) -> None:
        windows = build().windows([1.0] * 10)
        late = windows[-1].last + 300
        assert isinstance(case("dead-drafter").judge(windows, now=late), NotEnough)
        assert isinstance(case("dead-drafter").judge([]), NotEnough)

    def test_a_prefill_server_verifies_nothing(self, build: Any, case: Any) -> None:
        windows = build().windows([1.0] * 10)
        for finding in ("dead-drafter", "low-acceptance", "per-position-cliff"):
            assert isinstance(case(finding, facts={"role": "prefill"}).judge(windows), NotEnough)

    def test_it_says_that_the_counters_have_not_moved(self, build: Any, case: Any, began: float) -> None:
        counters = build().windows([3.2, 3.2])
        lines = build(source="log").windows([3.2, 3.2, 3.2, 1.0, 1.0, 1.0], requests=None)
        found = case("dead-drafter", facts=SGLANG).judge(lines, others={"counter": counters})
        assert isinstance(found, Finding)
        assert found.source == "log"
        assert "the counters have not moved since" in found.why
        moving = {"counter": build().windows([3.2] * 6)}
        assert "counters" not in case("dead-drafter", facts=SGLANG).judge(lines, others=moving).why

    def test_counters_that_never_moved_are_said_to_stand_still_only_where_the_page_is_read(
        self, build: Any, case: Any, began: float
    ) -> None:
        lines = build(source="log").windows([1.0, 1.0, 1.0], requests=None)
        page = [Health("decode-1", "metrics", began + at, up=True) for at in (15, 30)]
        assert "counters have not moved" in case("dead-drafter", facts=SGLANG).judge(lines, health=page).why
        assert "counters" not in case("dead-drafter", facts=SGLANG).judge(lines, health=page[:1]).why
        assert "counters" not in case("dead-drafter", facts=SGLANG).judge(lines).why

    def test_outputs_of_one_step_may_hide_what_was_accepted(self, build: Any, case: Any) -> None:
        """max_tokens=2: the one verify step of a request is cut to one token, however many it accepted."""
        cut = build().windows([1.0, 1.0, 1.0], requests=400.0, trim_bound=2800.0)
        assert isinstance(case("dead-drafter", facts=SGLANG).judge(cut), NotEnough)

    def test_outputs_of_fifty_steps_do_not(self, build: Any, case: Any) -> None:
        cut = build().windows([1.0, 1.0, 1.0], requests=8.0, trim_bound=56.0)
        assert cut[0].counts.bias_bound == pytest.approx(0.14)
        assert isinstance(case("dead-drafter", facts=SGLANG).judge(cut), Finding)

    def test_throttled_speculation_is_not_dead(self, build: Any, case: Any) -> None:
        throttled = build().windows([1.0] * 3, slots=100.0)
        assert isinstance(case("dead-drafter", facts={"verify_mode": "compact", "k": 7}).judge(throttled), NotEnough)
        assert isinstance(case("dead-drafter", facts={"verify_mode": "static", "k": 7}).judge(throttled), Finding)

    def test_a_look_takes_one_window_only_where_it_is_conclusive(self, build: Any, case: Any) -> None:
        none = build().windows([1.0], steps=60.0, by_position=(0.0, 0.0))
        some = build().windows([1.0], steps=60.0, by_position=(1.0, 0.0))
        assert isinstance(case("dead-drafter", "look").judge(none), Finding)
        assert isinstance(case("dead-drafter", "look").judge(some), NotEnough)
        assert isinstance(case("dead-drafter", "page").judge(none), NotEnough)


class TestLow:
    def judge(self, build: Any, case: Any, lengths: Sequence[float], facts: Any = SGLANG, **more: Any) -> Any:
        return case("low-acceptance", facts=facts).judge(build(k=facts.get("k")).windows(lengths, **more))

    def test_it_needs_steps_and_requests(self, build: Any, case: Any) -> None:
        assert isinstance(self.judge(build, case, [1.5] * 20), Finding)
        assert isinstance(self.judge(build, case, [1.5] * 20, steps=9.0), NotEnough)
        assert isinstance(self.judge(build, case, [1.5] * 20, requests=0.5), NotEnough)

    def test_where_requests_are_unknown_it_needs_ten_windows_over_ten_minutes(self, build: Any, case: Any) -> None:
        minute = build(source="log", seconds=60.0)
        assert isinstance(case("low-acceptance").judge(minute.windows([1.5] * 10, requests=None)), Finding)
        assert isinstance(case("low-acceptance").judge(minute.windows([1.5] * 9, requests=None)), NotEnough)
        quick = build(source="log", seconds=15.0)
        assert isinstance(case("low-acceptance").judge(quick.windows([1.5] * 30, requests=None)), NotEnough)

    def test_a_page_needs_the_upper_bound_under_the_threshold(self, build: Any, case: Any) -> None:
        rough = [1.2, 2.7] * 15
        verdict = self.judge(build, case, rough)
        assert isinstance(verdict, Finding)
        assert verdict.severity == "notice"  # k is 7, and 1.95 is surely under 3, but not surely under 2
        assert verdict.upper is not None
        assert verdict.upper > 2.0
        steady = self.judge(build, case, [1.9, 2.0] * 15)
        assert (steady.severity, steady.threshold) == ("warning", 2.0)
        assert steady.upper < 2.0

    def test_windows_that_share_their_requests_do_not_make_the_bound_narrow(self, build: Any, case: Any) -> None:
        """Long generations keep one acc_len over many windows: sixty windows are not sixty samples."""
        runs = [length for length in (1.4, 2.3, 1.6, 2.1, 1.4, 2.4, 1.5, 2.2, 1.6, 2.3) for _ in range(6)]
        mixed = [runs[(7 * at) % 60] for at in range(60)]
        assert isinstance(self.judge(build, case, mixed, {"k": 3}), Finding)
        assert isinstance(self.judge(build, case, runs, {"k": 3}), Clear)

    def test_a_look_needs_the_estimate_of_three_windows(self, build: Any, case: Any) -> None:
        windows = build().windows([3.0, 1.9, 2.0, 1.9], steps=40.0)
        assert isinstance(case("low-acceptance", "look").judge(windows), Finding)
        assert isinstance(case("low-acceptance", "look").judge(windows[:3]), Finding) is True
        assert case("low-acceptance", "look").judge(windows[:3]).severity == "notice"

    def test_a_look_takes_one_window_of_200_steps_where_fewer_than_three_exist(self, build: Any, case: Any) -> None:
        assert isinstance(case("low-acceptance", "look").judge(build().windows([1.5], steps=200.0)), Finding)
        assert isinstance(case("low-acceptance", "look").judge(build().windows([1.5], steps=199.0)), NotEnough)
        healthy_before = build().windows([5.0, 5.0, 1.5], steps=200.0)
        assert isinstance(case("low-acceptance", "look").judge(healthy_before), Clear)

    @pytest.mark.parametrize(("k", "threshold"), [(1, 1.35), (2, 1.70), (3, 2.0), (7, 2.0)])
    def test_the_threshold_follows_k(self, build: Any, case: Any, k: int, threshold: float) -> None:
        facts = {"k": k}
        under, over = threshold - 0.02, threshold + 0.02
        found = self.judge(build, case, [under] * 20, facts)
        assert found.threshold == pytest.approx(threshold)
        clear = self.judge(build, case, [over] * 20, facts)
        assert isinstance(clear, Clear) or clear.severity == "notice"

    def test_exactly_at_the_threshold_is_not_low(self, build: Any, case: Any) -> None:
        assert isinstance(self.judge(build, case, [2.0] * 20, {"k": 3}), Clear)

    def test_an_unknown_k_is_taken_to_be_as_small_as_the_figures_allow(self, build: Any, case: Any) -> None:
        near_the_ceiling = build(k=None).windows([1.9] * 20)
        assert isinstance(case("low-acceptance").judge(near_the_ceiling), Clear)
        once_above_three = build(k=None).windows([3.1] + [1.9] * 50)
        assert isinstance(case("low-acceptance").judge(once_above_three), Finding)

    def test_between_two_and_three_is_a_notice_where_k_is_at_least_four(self, build: Any, case: Any) -> None:
        assert self.judge(build, case, [2.6] * 20, {"k": 4}).severity == "notice"
        assert isinstance(self.judge(build, case, [2.6] * 20, {"k": 3}), Clear)
        assert isinstance(self.judge(build, case, [3.1] * 20, {"k": 7}), Clear)

    def test_a_given_threshold_replaces_the_rule(self, build: Any, case: Any) -> None:
        strict = case("low-acceptance", facts={"k": 3}, thresholds={"acc_len": 3.5})
        found = strict.judge(build(k=3).windows([3.2] * 20))
        assert isinstance(found, Finding)
        assert (found.severity, found.threshold) == ("warning", 3.5)

    def test_what_trimming_may_have_cut_off_is_not_low(self, build: Any, case: Any) -> None:
        trimmed = build(k=3).windows([1.9] * 20, trim_bound=80.0)
        assert trimmed[0].counts.bias_bound == pytest.approx(0.2)
        assert isinstance(case("low-acceptance", facts={"k": 3}).judge(trimmed), Clear)

    def test_it_ends_when_the_newest_windows_have_recovered_though_the_long_span_has_not(
        self, build: Any, case: Any
    ) -> None:
        verdict = self.judge(build, case, [1.5] * 40 + [3.2] * 16)
        assert isinstance(verdict, Clear) or verdict.severity == "notice"
        assert isinstance(self.judge(build, case, [1.5] * 40 + [3.2] * 16, {"k": 3}), Clear)

    def test_compact_verification_is_not_judged_where_its_window_is_unknown(self, build: Any, case: Any) -> None:
        facts = {"k": 7, "verify_mode": "compact"}
        assert isinstance(self.judge(build, case, [1.8] * 20, facts), NotEnough)
        of_two = build().windows([1.8] * 20, slots=800.0)
        assert isinstance(case("low-acceptance", facts=facts).judge(of_two), Clear)  # 0.8 of 2: the load trimmed it
        of_four = build().windows([1.8] * 20, slots=1600.0)
        assert isinstance(case("low-acceptance", facts=facts).judge(of_four), Finding)

    def test_idle_is_no_evidence(self, build: Any, case: Any) -> None:
        windows = build().windows([1.5] * 20)
        assert isinstance(case("low-acceptance").judge(windows, now=windows[-1].last + 300), NotEnough)

    def test_windows_without_steps_are_passed_over(self, build: Any, case: Any) -> None:
        windows = [replace(window, counts=Counts(passes=40.0)) for window in build().windows([1.0] * 20)]
        assert isinstance(case("low-acceptance").judge(windows), NotEnough)


class TestDrop:
    def test_against_a_baseline(self, build: Any, case: Any) -> None:
        judge = case("acceptance-drop").judge
        assert isinstance(judge(build().windows([4.0] * 20), baseline=4.5), Clear)
        assert judge(build().windows([3.5] * 20), baseline=4.5).severity == "warning"
        assert judge(build().windows([2.2] * 20), baseline=4.5).severity == "critical"
        assert isinstance(judge(build().windows([2.2] * 20)), NotEnough)

    def test_against_its_own_past_it_is_cautious(self, build: Any, case: Any) -> None:
        judge = case("acceptance-drop", "look").judge
        assert isinstance(judge(build().windows([2.6] * 3), reference=5.5), Clear)  # code, then creative writing
        found = judge(build().windows([1.6] * 3), reference=4.5)
        assert found.severity == "warning"
        assert "against the time before of 4.50" in found.why


class TestDecay:
    SLIDE = (3.4, 3.36, 3.31, 3.25, 3.16, 3.07, 2.98, 2.86, 2.7, 2.47, 2.22, 1.98, 1.89, 1.83)

    def test_a_slide_is_named_with_its_first_and_last_value(self, build: Any, case: Any) -> None:
        found = case("acceptance-decay", "look").judge(build(source="log", seconds=600.0).windows(self.SLIDE))
        assert isinstance(found, Finding)
        assert "from 3.40" in found.why
        assert "1.8" in found.why

    def test_a_step_is_none(self, build: Any, case: Any) -> None:
        random = Random(7)
        lengths = [4.0 + random.gauss(0, 0.2) for _ in range(7)] + [2.5 + random.gauss(0, 0.2) for _ in range(7)]
        assert isinstance(case("acceptance-decay", "look").judge(build(seconds=600.0).windows(lengths)), Clear)

    def test_neither_is_noise_nor_a_rise(self, build: Any, case: Any) -> None:
        random = Random(8)
        noise = [3.0 + random.gauss(0, 0.6) for _ in range(14)]
        for lengths in (noise, self.SLIDE[::-1]):
            assert isinstance(case("acceptance-decay", "look").judge(build(seconds=600.0).windows(lengths)), Clear)

    def test_it_is_not_paged(self, build: Any, case: Any) -> None:
        assert isinstance(case("acceptance-decay").judge(build(seconds=600.0).windows(self.SLIDE)), NotEnough)


class TestCliff:
    def test_trailing_positions_at_exactly_zero(self, build: Any, case: Any) -> None:
        rates = (0.6, 0.385, 0.215, 0.108, 0.062, *[0.0] * 10)
        window = build(k=15).windows([2.37], steps=65.0, by_position=tuple(65 * rate for rate in rates))
        found = case("per-position-cliff", "look", {"k": 15}).judge(window)
        assert isinstance(found, Finding)
        assert found.severity == "notice"
        assert "positions 6 to 15" in found.why

    @pytest.mark.parametrize(
        "rates",
        [(0.8, 0.6, 0.4, 0.2), (0.5, 0.2, 0.05, 0.0), (0.0, 0.0, 0.0, 0.0)],
        ids=["all accepted", "only the last at zero", "dead: another finding"],
    )
    def test_not(self, build: Any, case: Any, rates: tuple[float, ...]) -> None:
        window = build(k=4).windows([2.0], steps=100.0, by_position=tuple(100 * rate for rate in rates))
        assert isinstance(case("per-position-cliff", "look", {"k": 4}).judge(window), Clear)

    def test_drafts_of_varying_length_are_not_judged(self, build: Any, case: Any) -> None:
        window = build(k=8).windows([2.0], steps=100.0, by_position=(60.0, 40.0), proposed=300.0)
        assert isinstance(case("per-position-cliff", "look", {"k": 8}).judge(window), NotEnough)


class TestEager:
    def windows(self, build: Any, eager: Sequence[bool]) -> list[Sum]:
        return [
            build(source="log").window(at, 3.0, passes=40.0, eager_passes=40.0 if is_eager else 0.0)
            for at, is_eager in enumerate(eager)
        ]

    def test_decode_passes_outside_graphs(self, build: Any, case: Any) -> None:
        found = case("cuda-graph-decode-off").judge(self.windows(build, [True] * 10))
        assert isinstance(found, Finding)
        assert found.value == 1.0
        assert isinstance(case("cuda-graph-decode-off").judge(self.windows(build, [False] * 10)), Clear)

    def test_not_where_graphs_were_turned_off_on_purpose(self, build: Any, case: Any) -> None:
        windows = self.windows(build, [True] * 10)
        off = {"cuda_graph_disabled": True}
        assert isinstance(case("cuda-graph-decode-off", facts=off).judge(windows), Clear)
        assert case("config-cuda-graph-disabled", facts=off).judge().severity == "notice"
        assert isinstance(case("config-cuda-graph-disabled", facts={"cuda_graph_disabled": False}).judge(), Clear)
        assert isinstance(case("config-cuda-graph-disabled").judge(), NotEnough)

    def test_a_server_without_speculation_is_judged_too(self, build: Any, case: Any) -> None:
        plain = [replace(w, counts=Counts(passes=40.0, eager_passes=40.0)) for w in build().windows([1.0] * 10)]
        assert isinstance(case("cuda-graph-decode-off").judge(plain), Finding)

    def test_a_few_eager_passes_are_none(self, build: Any, case: Any) -> None:
        assert isinstance(case("cuda-graph-decode-off").judge(self.windows(build, [True, False] * 5)), Clear)


class TestNotActive:
    def looks(self, began: float, number: int, **more: Any) -> list[Health]:
        return [
            Health("decode-1", "metrics", began + 15 * at, up=True, **{"running": 3.0, "speculating": False, **more})
            for at in range(number)
        ]

    def test_asked_for_but_not_seen_under_load(self, case: Any, began: float) -> None:
        judge = case("spec-not-active", facts=ASKED).judge
        assert isinstance(judge(health=self.looks(began, 6)), Finding)
        assert isinstance(judge(health=self.looks(began, 3)), NotEnough)

    def test_not_asked_for(self, case: Any, began: float) -> None:
        for facts in ({}, {"speculative": False}):
            assert isinstance(case("spec-not-active", facts=facts).judge(health=self.looks(began, 6)), NotEnough)

    def test_idle_or_blind_looks_are_no_evidence(self, case: Any, began: float) -> None:
        judge = case("spec-not-active", facts=ASKED).judge
        assert isinstance(judge(health=self.looks(began, 6, running=0.0)), NotEnough)
        assert isinstance(judge(health=self.looks(began, 6, speculating=None)), NotEnough)

    def test_steps_speak_for_it(self, build: Any, case: Any, began: float) -> None:
        judge = case("spec-not-active", facts=ASKED).judge
        steps = {"log": build(source="log").windows([3.0] * 8)}
        assert isinstance(judge(health=self.looks(began, 6), others=steps), Clear)
        before_a_restart = {"log": build(source="log", began=began - 600).windows([3.0] * 8)}
        assert isinstance(judge(health=self.looks(began, 6), others=before_a_restart), Finding)

    def test_decode_lines_without_an_accept_length(self, build: Any, case: Any) -> None:
        lines = [replace(w, counts=Counts(passes=40.0)) for w in build(source="log").windows([1.0] * 2)]
        found = case("spec-not-active", "look", ASKED).judge(others={"log": lines})
        assert isinstance(found, Finding)
        assert "2 looks at log" in found.why


class TestStale:
    def test_the_log_has_ended_and_the_counters_move(self, build: Any, case: Any, began: float) -> None:
        lines, counters = build(source="log").windows([3.0] * 10), build().windows([3.0] * 40)
        found = case("telemetry-stale").judge(others={"log": lines, "counter": counters}, now=began + 600)
        assert isinstance(found, Finding)
        assert (found.source, found.since) == ("log", lines[-1].last)
        assert "the log has told nothing since" in found.why

    def test_everything_goes_on(self, build: Any, case: Any, began: float) -> None:
        both = {"log": build(source="log").windows([3.0] * 40), "counter": build().windows([3.0] * 40)}
        assert isinstance(case("telemetry-stale").judge(others=both, now=began + 600), Clear)

    def test_counters_that_stand_still_while_long_generations_run_are_normal_on_sglang(
        self, build: Any, case: Any, began: float
    ) -> None:
        both = {"log": build(source="log").windows([3.0] * 40), "counter": build().windows([3.0] * 5)}
        assert isinstance(case("telemetry-stale", facts=SGLANG).judge(others=both, now=began + 600), Clear)
        assert isinstance(case("telemetry-stale", facts=VLLM).judge(others=both, now=began + 600), Finding)

    def test_idle_is_not_stale(self, build: Any, case: Any, began: float) -> None:
        both = {"log": build(source="log").windows([3.0] * 5), "counter": build().windows([3.0] * 5)}
        assert isinstance(case("telemetry-stale").judge(others=both, now=began + 900), NotEnough)


class TestDown:
    def looks(self, began: float, ups: Sequence[bool]) -> list[Health]:
        return [
            Health("decode-1", "metrics", began + 15 * at, up=up, error=None if up else "ConnectError: refused")
            for at, up in enumerate(ups)
        ]

    def test_three_failed_looks_in_a_row(self, case: Any, began: float) -> None:
        judge = case("target-down").judge
        found = judge(health=self.looks(began, [True, False, False, False]))
        assert isinstance(found, Finding)
        assert found.since == began + 15
        assert "ConnectError: refused" in found.why
        assert isinstance(judge(health=self.looks(began, [False, True, False, False])), NotEnough)
        assert isinstance(judge(health=self.looks(began, [False, False, False, True])), Clear)

    def test_a_target_known_by_its_log_has_no_page_to_be_down(self, case: Any, began: float) -> None:
        log = [Health("decode-1", "log:/x", began + at, up=False) for at in range(9)]
        assert isinstance(case("target-down").judge(health=log), NotEnough)

    def test_nobody_looked(self, case: Any, began: float) -> None:
        looks = self.looks(began, [False] * 5)
        assert isinstance(case("target-down").judge(health=looks, now=began + 3600), NotEnough)


class TestTold:
    def hit(self, began: float, signature: str = "SG-DRAFT-ATTN-FALLBACK") -> Hit:
        return Hit("decode-1", "1", signature, began, excerpt="Falling back to 'flashinfer'", count=2)

    def test_a_line_that_is_a_signature(self, case: Any, began: float) -> None:
        found = case("draft-attention-backend-fallback").judge(
            hits=[self.hit(began)], signatures=SIGNATURES, now=began + 86400
        )
        assert isinstance(found, Finding)
        assert (found.severity, found.source, found.since) == ("warning", "signature", began)
        assert "2 x in the log" in found.why
        assert "Falling back to 'flashinfer'" in found.why

    def test_one_of_another_finding(self, case: Any, began: float) -> None:

        verdict = case("attention-backend-fallback").judge(hits=[self.hit(began)], signatures=SIGNATURES, logged=True)
        assert isinstance(verdict, Clear)

    def test_without_a_log_it_is_unknown(self, case: Any) -> None:
        assert isinstance(case("attention-backend-fallback").judge(), NotEnough)

    def test_what_is_repeated_while_it_lasts_ends_when_it_is_not(self, case: Any, began: float) -> None:
        judge = case("zombie-requests").judge
        hits = [self.hit(began, "SG-ZOMBIE")]
        assert isinstance(judge(hits=hits, signatures=SIGNATURES, logged=True, now=began + 60), Finding)
        assert isinstance(judge(hits=hits, signatures=SIGNATURES, logged=True, now=began + 1000), Clear)

    def test_a_fact_says_it(self, case: Any) -> None:
        found = case("synthetic-acceptance", facts={"synthetic_acceptance": True}).judge()
        assert (found.severity, found.source) == ("warning", "facts")


class TestQuality:
    def test_more_than_k_plus_one_is_named_and_not_clipped(self, build: Any, case: Any) -> None:
        found = case("data-quality", facts={"k": 3}).judge(others={"counter": build(k=3).windows([4.6] * 3)})
        assert isinstance(found, Finding)
        assert found.value == pytest.approx(4.6)
        assert "more than k + 1 = 4" in found.why

    def test_the_ceiling_is_sound(self, build: Any, case: Any) -> None:
        verdict = case("data-quality", facts={"k": 3}).judge(others={"counter": build(k=3).windows([4.0] * 3)})
        assert isinstance(verdict, Clear)

    def test_steps_that_emit_many_times_what_was_generated(self, case: Any, began: float) -> None:
        sums = Sum("decode-1", "counter", began, (), Counts(steps=2.2e8, emitted=8.8e8), 1, True, began, began + 15)
        page = [Health("decode-1", "metrics", began + 15, up=True, decode_tokens=31_000.0)]
        found = case("data-quality", facts={"engine": "vllm"}).judge(others={"counter": [sums]}, health=page)
        assert "880000000 tokens while 31000 were generated" in found.why
        sound = [replace(page[0], decode_tokens=8.7e8)]
        verdict = case("data-quality", facts={"engine": "vllm"}).judge(others={"counter": [sums]}, health=sound)
        assert isinstance(verdict, Clear)

    def test_doubts_of_readers_are_told(self, case: Any) -> None:
        evidence = replace(case("data-quality").evidence(), doubts=("counters of vLLM's V0 engine",))
        found = quality.judge(evidence, case("data-quality").limits)
        assert isinstance(found, Finding)
        assert found.why == "counters of vLLM's V0 engine"


def overdispersed(build: Any, mean: float, hours: float, seed: int) -> list[Sum]:
    """Healthy traffic of a busy server: every request has an acceptance of its own (SD 0.3), windows of 15 seconds."""
    random = Random(seed)
    running = [(max(1.0, random.gauss(mean, 0.3)), random.lognormvariate(5.0, 1.0)) for _ in range(8)]
    windows: list[Sum] = []
    for at in range(int(hours * 240)):
        finished = steps = emitted = 0.0
        for slot, (length, left) in enumerate(running):
            done = min(left, 60.0)
            steps += done
            emitted += done * length
            if left > 60.0:
                running[slot] = (length, left - 60.0)
            else:
                finished += 1
                running[slot] = (max(1.0, random.gauss(mean, 0.3)), random.lognormvariate(5.0, 1.0))
        windows.append(build(k=3).window(at, emitted / steps, steps, finished, spread=Spread.of(emitted, steps)))
    return windows


def test_overdispersed_healthy_traffic_is_never_paged(build: Any, case: Any, simulated_hours: float) -> None:
    """acc_len 2.6 against a threshold of 2.0, requests differing by SD 0.3, hours long."""
    low, dead = case("low-acceptance", facts={"k": 3}), case("dead-drafter", facts={"k": 3})
    windows = overdispersed(build, 2.6, simulated_hours, seed=1)
    for end in range(60, len(windows), 3):
        for detector in (low, dead):
            assert isinstance(detector.judge(windows[end - 60 : end]), Clear), windows[end - 1].last


def test_overdispersed_low_traffic_is_found(build: Any, case: Any) -> None:
    """acc_len 1.75 against 2.0: within minutes, and at nearly every evaluation from then on."""
    low = case("low-acceptance", facts={"k": 3})
    windows = overdispersed(build, 1.75, 1.0, seed=2)
    verdicts = [low.judge(windows[max(0, end - 60) : end]) for end in range(20, len(windows), 2)]
    found = [isinstance(verdict, Finding) for verdict in verdicts]
    assert sum(found) > 0.9 * len(found)
