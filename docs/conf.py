"""Configuration of the site; see ``make docs``."""

import pymc_austerity

project = "pymc_austerity"
author = "The pymc_austerity developers"
copyright = author
release = version = pymc_austerity.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = [
    "_build",
    "_generated",  # tables that pages include
    "gallery/*.myst.md",  # shown as they were executed, from the notebook of the same name
]
nb_execution_mode = "off"  # `make notebooks` executes them and keeps the outputs
nb_merge_streams = True
templates_path = ["_templates"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# Attributes of PyMC's distributions: what makes their variables, which has no page of its own.
nitpick_ignore = [
    ("py:class", "pymc_austerity.paper.selection.InclusionIndicatorsRV"),
    ("py:class", "pymc_austerity.paper.selection.SpikeAndSlabRV"),
    ("py:class", "pymc_austerity.paper.orthonormal.UniformStiefelRV"),
]

copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "pymc_austerity"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["csv.js"]
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": [],  # tables need the width
    "navigation_with_keys": False,
}
