"""Studies: ARMS maps a name to what the arm writes, BASELINE names the arm that the others are compared to.

VARIANTS, if there are any, maps a name to what is written below the arms; DATA names the presets that a study runs on
where none is given.
"""
