"""Studies: ARMS maps a name to what the arm writes, BASELINE names the arm that the others are compared to."""
