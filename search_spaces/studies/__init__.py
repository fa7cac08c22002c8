"""The shipped studies, one in each module: ARMS maps a name to the settings of the arm, BASELINE names one of the arms.

VARIANTS, if defined, maps a name to settings that all arms are run with; an arm's own settings override them. SETTINGS,
in place of VARIANTS, are draws of one search, and the arms are compared at equal tuning budget. DATA, if defined, names
the default presets of the study.
"""
