"""Before any test: one thread of torch in each process, and no skipping of what `make test` has installed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

# Read by OpenMP when torch is imported, here and in the processes that tests start. Tests run side by side, one on each
# core; those about threads ask for more. Threads that wait asleep leave the cores of a busy machine to those who work.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# What a test may do without. All else is installed by the extra `dev`, so that its absence is a failure.
OPTIONAL = (
    *("a GPU", "a browser", "$HEEDFUL_DATA", "$HEEDFUL_MODELS", "the extra bench", "make bench-setup"),
    *("the extra ray", "Linux", "glibc", "POSIX signals", "an ordinary user", "oneDNN", "openssl"),
)
ALLOWED = re.compile(rf"Skipped: needs ({'|'.join(map(re.escape, OPTIONAL))})(?!\w)")


def refuse_unnamed_skip(report: pytest.CollectReport | pytest.TestReport) -> None:
    """Make a skipped test, or a whole file of them, a failed one unless its reason names an optional part."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    if report.skipped and not hasattr(report, "wasxfail") and not ALLOWED.match(reason):
        report.outcome = "failed"
        report.longrepr = f"{reason}\nOnly what needs {', '.join(OPTIONAL)} may be skipped, as `needs …`."


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report = yield
    refuse_unnamed_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Iterator[None]:
    report = yield
    refuse_unnamed_skip(report)
    return report
