"""Spark SQL's grammar for queries, in four parts: cursor → types → expressions → relations → queries."""
