"""The command line. Every command imports what it uses, so that ``inspect`` starts at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.demo.inbox import Inbox

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status. 2 for a command line or a configuration that cannot be used."""
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        return command(options)
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="draftgauge", description="Watches the acceptance length of speculative decoding on SGLang and vLLM."
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="watch targets, alert, and answer at /api")
    _add_service_options(serve)
    serve.add_argument("--target", action="append", metavar="URL", help="a server to watch; may be repeated")
    serve.add_argument("--log", action="append", metavar="PATH", help="a log of the one --target (path or glob)")
    serve.set_defaults(command=_serve)

    demo = commands.add_parser("demo", help="serve, with emulated engines as targets")
    _add_service_options(demo)
    demo.add_argument(
        "--speed", type=float, default=1.0, help="how much faster than the wall's the engines' clock runs"
    )
    demo.set_defaults(command=_demo)

    inspect = commands.add_parser("inspect", help="read logs and metrics of a bundle, offline")
    inspect.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a directory of files")
    inspect.add_argument("--json", action="store_true", help="print one JSON object")
    inspect.set_defaults(command=_inspect)

    categories = commands.add_parser("categories", help="try the rules by which requests fall into categories")
    trying = categories.add_subparsers(required=True, metavar="COMMAND")
    test = trying.add_parser("test", help="count the categories of the requests in a file; no prompt is shown")
    test.add_argument("file", type=Path, metavar="FILE", help="one JSON object a line, or a JSON array")
    test.add_argument("--config", type=Path, metavar="FILE", help="YAML file with the rules (docs/configuration.md)")
    test.add_argument("--json", action="store_true", help="print one JSON object")
    test.set_defaults(command=_test_categories)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when asked: that takes longer than starting."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        parser.exit(message=f"draftgauge {version('draftgauge')}\n")


def _add_service_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file (docs/configuration.md)")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (8400; 0 takes any)")
    parser.add_argument(
        "--allow-anonymous", action="store_true", help="let everybody read who can reach the address, without a token"
    )
    parser.add_argument("--data-dir", type=Path, help="directory of the embedded stores (./draftgauge-data)")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")


def _serve(options: argparse.Namespace) -> int:
    if options.log and len(options.target or ()) != 1:
        return _fail("--log belongs to exactly one --target", 2)
    targets: list[dict[str, Any]] = [{"url": url} for url in options.target or ()]
    if options.log:
        targets[0]["logs"] = [Path(path) for path in options.log]
    return _run_service(options, {"targets": targets})


def _demo(options: argparse.Namespace) -> int:
    import tempfile

    from app.demo.fleet import DEMO, running
    from app.demo.inbox import Inbox, receiving
    from app.demo.show import settings
    from app.demo.story import STORY, playing

    with (
        tempfile.TemporaryDirectory(prefix="draftgauge-demo-") as folder,
        receiving(Inbox()) as inbox,
        running(DEMO, Path(folder), options.speed) as fleet,
        playing(STORY, fleet),
    ):
        options.data_dir = options.data_dir or Path(folder, "data")
        shown = settings(fleet, inbox, None if options.port == 0 else f"http://127.0.0.1:{options.port or 8400}")
        return _run_service(options, shown, demo=inbox)


def _run_service(options: argparse.Namespace, settings: Mapping[str, Any], demo: Inbox | None = None) -> int:
    from app.config import ConfigError, load
    from app.logs import configure
    from store.errors import StoreUnusable

    overrides = {
        "listen": {"host": options.host, "port": options.port},
        "access": {"allow_anonymous": options.allow_anonymous or None},
        "data_dir": options.data_dir,
        **settings,
    }
    try:
        config = load(options.config, overrides)
    except ConfigError as error:
        return _fail(str(error), 2)
    configure(options.log_level)

    import uvloop

    from app.runtime import Runtime

    async def run() -> None:
        await Runtime(config, demo=demo).run()

    try:
        uvloop.run(run())
    except (StoreUnusable, OSError) as error:
        return _fail(str(error), 1)
    return 0


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"draftgauge: {message}\n")
    return status


def _inspect(options: argparse.Namespace) -> int:
    from app.inspecting import report

    return report(options.paths, as_json=options.json)


def _test_categories(options: argparse.Namespace) -> int:
    from app.config import ConfigError, load
    from app.records.settings import categories_of
    from app.records.trial import report

    try:
        config = load(options.config)
    except ConfigError as error:
        return _fail(str(error), 2)
    try:
        body = options.file.read_bytes()
    except OSError as error:
        return _fail(f"{options.file} cannot be read: {error.strerror}", 2)
    return report(body, categories_of(config.categories), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
