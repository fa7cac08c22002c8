"""The paper's printed results (arXiv 1911.02855v3), and ours beside them."""
