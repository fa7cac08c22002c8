"""Configuration of Sphinx: `make docs` builds these pages, without network, and treats warnings as errors."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY))

from docs.settings_reference import MARK, settings_reference  # noqa: E402  (it needs the path above)

project = "dice_ray"
author = "the authors of dice_ray"
release = metadata.version("dice-ray")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "results/*/*"]  # the studies that the pages of results read
html_theme = "furo"
html_title = f"dice_ray {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
myst_heading_anchors = 4  # the anchors that GitHub gives headings
highlight_language = "text"

# Docstrings are plain text with code in single backticks, as GitHub and editors show them.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False  # the types are in the signature


def fill_in_settings(app: Sphinx, page: str, source: list[str]) -> None:
    """Write the reference of all settings, made from the schema, in place of its mark."""
    if MARK in source[0]:
        source[0] = source[0].replace(MARK, settings_reference())


def setup(app: Sphinx) -> None:
    app.connect("source-read", fill_in_settings)
