"""Settings shared by all tests. Fixtures belong into the file that uses them."""

import os
import tempfile

from hypothesis import HealthCheck, settings

# Examples compile code, so a single one may be slow; a failing one prints how to run it again. On CI
# the examples are the same each time, so that a red run is the change's fault; elsewhere they are new.
settings.register_profile(
    "jitney",
    deadline=None,
    print_blob=True,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("jitney")

# Before jitney is imported: the tests neither read nor fill the user's cache of compiled code. The
# workers of pytest-xdist inherit the folder from their parent, so they share what they compile.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _folder = tempfile.TemporaryDirectory(prefix="jitney-tests-")  # removed when pytest ends
    os.environ["JITNEY_CACHE_DIR"] = _folder.name
