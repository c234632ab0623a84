"""What the service reads of a metrics page: peers are asked to keep the same."""

from __future__ import annotations

SGLANG = (
    "sglang:spec_verify_calls_total",
    "sglang:generation_tokens_total",
    "sglang:num_requests_total",
    "sglang:spec_accept_length",
    "sglang:spec_accept_rate",
    "sglang:spec_cap_length",
    "sglang:spec_block_accept_length",
    "sglang:spec_num_steps",
    "sglang:spec_num_draft_tokens",
    "sglang:num_running_reqs",
    "sglang:num_queue_reqs",
    "sglang:realtime_tokens_total",
    "sglang:cuda_graph_passes_total",
    "sglang:startup_time_seconds",
)
VLLM = (
    "process_start_time_seconds",
    "vllm:spec_decode_num_drafts_total",
    "vllm:spec_decode_num_draft_tokens_total",
    "vllm:spec_decode_num_accepted_tokens_total",
    "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    "vllm:time_to_first_token_seconds_count",
    "vllm:inter_token_latency_seconds_count",
    "vllm:inter_token_latency_seconds_sum",
    "vllm:generation_tokens_total",
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
)
