"""One run, whole: its folder, what it is built of, the two ways to train it, and what a trained one can do."""
