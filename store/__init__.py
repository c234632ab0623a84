"""Where windows (history) and alerts, outbox and facts (state) are kept."""
