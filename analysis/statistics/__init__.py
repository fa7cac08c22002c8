"""Statistics of scores: intervals and tests over seeds, new data, the best of n settings, variance, power."""
