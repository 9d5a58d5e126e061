"""Typed events, by their subject; `skerry.model.trace` gives all of them, and `emit`."""
