"""Benchmarks: ratios measured side by side in one run. `python -m bench [NAME …]`; none named runs them all."""
