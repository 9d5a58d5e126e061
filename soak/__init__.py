"""Mixed queries for as long as one likes: `make soak MINUTES=30` (docs/soak.md)."""
