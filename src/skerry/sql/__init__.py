"""SQL: text → tree → gate → bound. `analyse` is the way in; `render` the way out to Spark."""
