"""Simulated commits to tables of our own: the cores of src/skerry/tables, with invented disks, links and clocks."""
