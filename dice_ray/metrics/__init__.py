"""Metrics: additive counts first, one ratio last."""
