"""Alembic's entry: runs on the connection, and inside the transaction, that ``store.schema`` hands over."""

from __future__ import annotations

from alembic import context

from store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
