"""How the documentation is built: `make docs`. Nothing is fetched from the network, now or by the reader."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes

import truecal

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "truecal"
author = "The truecal developers"
copyright = "The truecal developers. BSD-3-Clause"
version = release = truecal.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "mathml",
    "api_pages",
    "estimator_table",
    "command_line",
    "layers",
]
exclude_patterns = ["_build", "_ext", "_templates", "**/README.md", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
nitpicky = False
suppress_warnings = ["config.cache"]

# -- Pages -------------------------------------------------------------------------------------------

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# -- Docstrings --------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = True
autodoc_mock_imports = [name for name in ("torch", "torchmetrics") if find_spec(name) is None]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
python_display_short_literal_types = True
default_role = "py:obj"

# -- Gallery -----------------------------------------------------------------------------------------

EXAMPLES = HERE.parent / "examples"
HAS_GALLERY = any(EXAMPLES.glob("plot_*.py"))


def figures_for_light_and_dark(gallery_conf, name):
    """Make figures transparent, with text that is legible on light and dark pages."""
    import matplotlib as mpl

    grey = "#747474"
    keys = (
        "text.color",
        "axes.labelcolor",
        "axes.edgecolor",
        "xtick.color",
        "ytick.color",
        "legend.labelcolor",
    )
    mpl.rcParams.update({"savefig.transparent": True, "savefig.dpi": 110, **dict.fromkeys(keys, grey)})


if HAS_GALLERY:
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": str(EXAMPLES),
        "gallery_dirs": "gallery",
        "within_subsection_order": "gallery_order.Order",
        "thumbnail_size": (500, 350),
        "filename_pattern": r"/plot_",
        "ignore_pattern": r"^(?!plot_)",
        "write_computation_times": False,
        "download_all_examples": False,
        "remove_config_comments": True,
        "show_memory": False,
        "show_signature": False,
        "min_reported_time": 10,
        "plot_gallery": "True",
        "image_scrapers": ("matplotlib",),
        "doc_module": ("truecal",),
        "reference_url": {"truecal": None},
        "abort_on_example_error": True,
        "reset_modules": ("matplotlib", figures_for_light_and_dark),
    }
else:
    exclude_patterns.append("gallery")

# -- Looks -------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "truecal"
html_static_path = ["_static"]
html_css_files = ["truecal.css"]
html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
_WITHOUT_SIDEBAR = (
    "index",
    "estimators",
    "reproduction",
    "reproduction/comparison",
    "external",
    "architecture",
    "coming_from",
    "claims",
    "contributing",
    "changelog",
)
html_sidebars = {name: [] for name in _WITHOUT_SIDEBAR}
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "truecal"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "back_to_top_button": False,
}

# -- Pages that are made by commands, and may not be there yet ------------------------------------------

#: For each page the lines of its table of contents that may have to go, with the file that they need.
OPTIONAL = {
    "index": {"gallery/index": "gallery/index.rst", "Reproduction <reproduction>": "reproduction.md"},
    "guide/index": {"large_data": "guide/large_data.md", "json": "guide/json.md"},
}


def leave_out_missing(app, docname, source):
    """Take lines out of a table of contents whose pages do not exist."""
    for line, file in OPTIONAL.get(docname, {}).items():
        if not (HERE / file).exists():
            source[0] = source[0].replace(f"\n{line}\n", "\n")


def keep_numbers_whole(app, doctree, docname):
    """Mark table cells that hold a short number, so that no line ends within it: 6e-06, 55.1 ms."""
    for entry in doctree.findall(nodes.entry):
        text = entry.astext()
        if len(text) <= 16 and any(character.isdigit() for character in text):
            entry["classes"].append("tc-whole")


def leave_out_scikit_learn(app, what, name, obj, skip, options):
    """Leave out methods that scikit-learn adds to its estimators; their texts refer to its own pages."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn.") else None


def setup(app):
    """Connect what is above."""
    app.connect("autodoc-skip-member", leave_out_scikit_learn)
    app.connect("doctree-resolved", keep_numbers_whole)
    app.connect("source-read", leave_out_missing)
