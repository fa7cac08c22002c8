"""Data: what a reader yields, where it is read from, and generated corpora."""
