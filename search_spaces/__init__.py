"""What sweeps and studies vary: search spaces, arms, studies and presets."""
