"""Emulated engines: processes that speak the surfaces of SGLang and vLLM on a clock that may run fast.

One generative model (``workload``, ``request``, ``faults``, ``scheduler``, ``simulation``) decides what happens; a face
(``sglang``, ``vllm``) shows it as that engine would, and ``truth`` keeps what really happened as integers. Nothing here
reads a page or a log, and nothing here is imported by what does: a misreading cannot be shared.
"""
