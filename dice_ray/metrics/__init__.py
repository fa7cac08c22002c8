"""Metrics: counts first, one ratio last."""
