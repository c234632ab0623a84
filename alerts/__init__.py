"""From evidence to findings, from findings to alerts, from alerts to messages."""
