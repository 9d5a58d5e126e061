"""A seeded world around the cores of the elastic group-by (docs/simulation.md)."""
