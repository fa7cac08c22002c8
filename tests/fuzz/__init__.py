"""Fuzzing: random and altered input for everything that dice_ray reads, and what an input must not do."""
