"""Members as real processes in network namespaces, killed, stopped and cut off from each other (docs/chaos.md)."""
