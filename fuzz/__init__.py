"""Any bytes into the decoders: a coverage-guided search for those that crash them (`make fuzz`)."""
