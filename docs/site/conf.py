"""Configure Sphinx for `make docs`; `gather.py` gathers the pages."""

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

project = "xetl"
html_title = "xetl"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"  # light and dark, wide and narrow; nothing from other hosts
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
napoleon_use_rtype = False
lexers |= {name: TextLexer() for name in ("mlir", "mermaid")}  # Pygments has none
