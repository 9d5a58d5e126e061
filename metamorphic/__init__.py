"""Generated queries that must have one answer, however the tables lie and whichever rules plan them."""
