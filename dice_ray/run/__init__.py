"""One run, whole; for now only what a driver shows of its runs."""
