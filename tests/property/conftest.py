"""Property tests try the same examples every time; HYPOTHESIS_PROFILE=explore looks for new ones."""

import os

from hypothesis import settings

settings.register_profile("fixed", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
