"""Tables of our own: what one member keeps of them on its disk, and how it reads that back. Nothing calls it yet."""
