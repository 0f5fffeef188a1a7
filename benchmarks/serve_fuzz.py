"""Random requests from the server's own OpenAPI description: none may get a 5xx or an answer that it does not describe.

heedful serve MODEL …
python benchmarks/serve_fuzz.py http://127.0.0.1:8000 --cases 20000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from results_file import RESULTS, Table, write_results
from schemathesis import GenerationMode, checks
from schemathesis.core.failures import FailureGroup

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
PATIENCE = 120.0
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


def fuzz(url: str, cases: int, only: Collection[str] = ()) -> dict[str, Any]:
    """Send so many cases to every operation with a body, or to those of some paths, half of them wrong on purpose.

    An operation without a body has nothing to vary, and is asked once.
    """
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    statuses: dict[str, Counter[int]] = {}
    failures: list[str] = []

    def send(case: Any) -> None:
        response = case.call(base_url=url, timeout=PATIENCE)
        statuses[case.operation.label][response.status_code] += 1
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as failure:  # all are told at the end
            failures.append(f"{case.method} {case.path}: {failure}")

    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if only and operation.path not in only:
            continue
        statuses[operation.label] = Counter()
        for mode in MODES if operation.body else MODES[:1]:
            strategy = operation.as_strategy(generation_mode=mode)
            hypothesis.settings(
                max_examples=-(-cases // len(MODES)) if operation.body else 1,
                database=None,
                deadline=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )(hypothesis.given(case=strategy)(send))()
    return {
        "cases": sum(sum(one.values()) for one in statuses.values()),
        "statuses": dict(sum(statuses.values(), Counter[int]())),
        "operations": statuses,
        "failures": failures,
    }


def main() -> None:
    """Run, show and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--cases", type=int, default=20_000, help="in all, shared among the operations with a body")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "serve_fuzz.json")
    options = parser.parse_args()
    schema = schemathesis.openapi.from_url(f"{options.url}/openapi.json")
    varied = sum(bool(found.ok().body) for found in schema.get_all_operations())  # type: ignore[union-attr]
    report = fuzz(options.url, -(-options.cases // varied))
    what = (
        "Random requests made by schemathesis from the server's own OpenAPI description, half of them wrong on "
        "purpose, each answer held against that description."
    )
    rows = [
        ["cases", report["cases"]],
        *([f"answered with {status}", count] for status, count in sorted(report["statuses"].items())),
        ["5xx", sum(count for status, count in report["statuses"].items() if status >= 500)],
        ["not as described", len(report["failures"])],
    ]
    by_operation = [[label, sum(counts.values())] for label, counts in report["operations"].items()]
    tables = [Table(("what", "count"), rows), Table(("operation", "cases"), by_operation)]
    write_results(options.output, "The server under random requests", what, tables, report["failures"][:10])
    raise SystemExit(bool(report["failures"]))


if __name__ == "__main__":
    main()
