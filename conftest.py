"""Which modules pytest leaves out: those that need a package that is not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torchmetrics") else ["src/truecal/integrations/torchmetrics.py"]
