"""What is varied: spaces, arms, studies and presets."""
