"""Leaves out the examples of modules whose library is not installed; `make test-engines` runs them."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torchmetrics") else ["truecal/integrations/torchmetrics.py"]
