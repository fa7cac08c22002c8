"""The shipped studies, one in each module: ARMS maps a name to the settings of the arm, BASELINE names one of the arms.

VARIANTS, if defined, maps a name to settings that all arms are run with; an arm's own settings override them. In place
of VARIANTS, SPACE is a search space that settings are drawn from, and the arms are compared at equal tuning budget;
SPACES maps an arm to a space of parameters that it alone has; and SETTINGS are such settings that were drawn already.
DATA, if defined, names the default presets of the study.
"""
