"""Tables of our own: what one member keeps of them on its disk, and how it reads that back.

Nothing calls it yet. Not here: staged files of bulk writes, TRUNCATE, columns that change, and the views by which Spark
reads files and overlay together.
"""
