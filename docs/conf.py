"""How Sphinx reads the pages; `make docs` calls it (tools/docs_site.py). Nothing in the site asks a network."""

project = "Spinloom"
author = "the Spinloom developers"
project_copyright = author

extensions = ["myst_parser"]
exclude_patterns = ["README.md", ".doctrees"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = [
    "myst.header",  # a page of the reference begins its parts at any level
    "misc.highlighting_failure",  # what a command printed is no language
]
highlight_language = "text"
smartquotes = False  # `--out` stays as it is typed
nitpicky = False

html_theme = "furo"
html_title = "Spinloom"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_search_summary = False  # a browser may not fetch pages that it reads from a disk
html_show_sphinx = False
html_copy_source = False
html_permalinks_icon = "#"
