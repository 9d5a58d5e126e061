"""Tables of our own: their definitions, which way a write goes, how members commit it, what one keeps on its disk.

Not here: TRUNCATE, columns that change, moves of buckets.
"""
