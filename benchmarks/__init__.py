"""Draftgauge beside its peers: ratios in the same run. ``python -m benchmarks [NAME ...]``."""
