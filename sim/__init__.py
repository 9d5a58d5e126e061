"""Seeded simulation of whole clusters: real members, an invented network, clock and Spark (docs/simulation.md)."""
