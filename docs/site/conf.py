"""Settings of Sphinx for the pages that build.py puts together."""

from docs.site.build import SITE
from nmt import __version__

project = "nmt-smt"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc"]  # myst_nb includes myst_parser
nb_execution_mode = "force"
nb_execution_in_temp = True  # what notebooks write is thrown away
nb_execution_timeout = 1200
nb_execution_raise_on_error = True
html_theme = "furo"
html_title = f"nmt-smt {__version__}"
html_copy_source = False
html_show_copyright = False
highlight_language = "none"
html_static_path = [str(SITE / "static")]
html_css_files = ["site.css"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
default_role = "code"  # `name` in docstrings
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
