from truecal.report._page import render as render
from truecal.report._page import render_notebook as render_notebook
