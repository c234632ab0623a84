"""``python -m benchmarks [NAME ...]``: all, or those named. Nothing fails that another one lacks."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib import import_module

from benchmarks.processes import Missing, load

NAMES = ("inspect", "exposition", "logs", "queries", "fleet")


def main() -> int:
    """Run them one after the other; 1 where one of them could not run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--targets", type=int, default=50, help="fleet: how many (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="fleet: how long (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=1_000_000, help="logs: how many (default: %(default)s)")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))} (there are {', '.join(NAMES)})")
    print(f"Python {platform.python_version()}, {platform.machine()}, {load()}")
    failed = 0
    for name in options.names or NAMES:
        try:
            import_module(f"benchmarks.{name}").run(options)
        except Missing as missing:
            print(f"\n{name}: not run: {missing}", flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
