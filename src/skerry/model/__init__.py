"""The types that several folders speak of. Everything may import this folder; it imports none of them."""
