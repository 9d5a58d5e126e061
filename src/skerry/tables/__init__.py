"""Tables of our own: which way a write goes, how members commit it, what one of them keeps on its disk.

No statement reaches any of it yet. Not here: staged files of bulk writes, TRUNCATE, columns that change, moves of
buckets, and the views by which Spark reads files and overlay together.
"""
