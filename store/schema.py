"""Brings a state database to the schema of this version, by Alembic's migrations."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect


class NotOurs(Exception):
    """The database cannot be brought to this version's schema: why."""


def migrate(connection: Connection) -> None:
    """Create or upgrade the tables, within the connection's transaction.

    Raises ``NotOurs`` for a database that a newer version wrote, or that holds something else.
    """
    config = Config()
    config.set_main_option("script_location", "store:migrations")
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is None and inspect(connection).get_table_names():
        raise NotOurs("holds tables, but not Draftgauge's")
    if revision is not None and revision not in known:
        raise NotOurs(f"written by a newer Draftgauge (schema {revision}; this one knows up to {max(known)})")
    command.upgrade(config, "head")
