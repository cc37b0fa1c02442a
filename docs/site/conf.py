"""Settings of Sphinx for the pages that build.py puts together."""

from nmt import __version__

project = "nmt-smt"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"nmt-smt {__version__}"
html_copy_source = False
html_show_copyright = False
highlight_language = "none"
html_static_path: list[str] = []
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
default_role = "code"  # `name` in docstrings
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
