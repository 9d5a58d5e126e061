"""Large writes and copies in simulated clusters: a member's own shells, files and SQLite, in virtual time."""
