"""Facts, hits, alerts, messages and attempts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "facts",
        sa.Column("target", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_table(
        "hits",
        sa.Column("identity", sa.String(32), primary_key=True),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("incarnation", sa.Text, nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
        sa.Column("rank", sa.Text),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("excerpt", sa.Text, nullable=False),
        sa.Column("captures", sa.JSON, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("counted", sa.JSON, nullable=False),
        sa.Column("counted_until", sa.Double),
    )
    op.create_index("hits_by_target", "hits", ["target", "at"])
    op.create_table(
        "alerts",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("finding", sa.Text, nullable=False),
        sa.Column("severity", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("active_since", sa.Double, nullable=False),
        sa.Column("evaluated_at", sa.Double, nullable=False),
        sa.Column("true_seconds", sa.Double, nullable=False),
        sa.Column("fired_at", sa.Double),
        sa.Column("clear_since", sa.Double),
        sa.Column("resolved_at", sa.Double),
        sa.Column("episode", sa.Integer, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
    )
    op.create_table(
        "messages",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("alert_key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("next_at", sa.Double),
        sa.UniqueConstraint("id", "channel", name="one_message_per_channel"),
    )
    op.create_index("messages_waiting", "messages", ["status", "next_at"])
    op.create_index("messages_by_alert", "messages", ["alert_key", "channel"])
    op.create_index("messages_by_age", "messages", ["created_at"])
    op.create_table(
        "attempts",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("message", sa.Integer, sa.ForeignKey("messages.number", ondelete="CASCADE"), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
    )
    op.create_index("ix_attempts_message", "attempts", ["message"])
