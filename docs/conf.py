"""How Sphinx builds the site: `.ci/docs`."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for `docstrings`

os.environ["JITNEY_QUICK"] = "1"  # notebooks show the same, and are compiled in less time
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"

project = "jitney"
author = "the jitney authors"
html_title = "jitney"
extensions = ["myst_nb", "sphinx_copybutton", "docstrings"]
exclude_patterns = ["_build", "gallery/*"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
nb_execution_mode = "cache"
nb_execution_timeout = 180
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
highlight_language = "python"
pygments_style, pygments_dark_style = "friendly", "monokai"
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"  # fonts of the reader's system; nothing is loaded from elsewhere
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
