"""What an acceptance length is: counts, series, windows, facts and queries. Pure: no I/O, no clock."""
