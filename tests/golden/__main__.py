"""`python -m golden`."""

import sys

from golden.record import main

sys.exit(main())
