"""Random requests from the server's own OpenAPI description: none may get a 5xx or an answer that it does not describe.

heedful serve MODEL …
python benchmarks/serve_fuzz.py http://127.0.0.1:8000 --cases 20000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection
from typing import Any

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis import GenerationMode, checks

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


def fuzz(url: str, cases: int, only: Collection[str] = ()) -> dict[str, Any]:
    """Send so many cases to every operation, or to those of some paths, half of them wrong on purpose."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    statuses: Counter[int] = Counter()
    failures: list[str] = []

    def send(case: Any) -> None:
        response = case.call(base_url=url)
        statuses[response.status_code] += 1
        try:
            case.validate_response(response, checks=CHECKS)
        except Exception as failure:  # a group of failures; all are told at the end
            failures.append(f"{case.method} {case.path}: {failure}")

    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if only and operation.path not in only:
            continue
        modes = GenerationMode if operation.body else [GenerationMode.POSITIVE]
        for mode in modes:
            strategy = operation.as_strategy(generation_mode=mode)
            hypothesis.settings(
                max_examples=-(-cases // len(modes)),
                database=None,
                deadline=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )(hypothesis.given(case=strategy)(send))()
    return {"cases": sum(statuses.values()), "statuses": dict(statuses), "failures": failures}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--cases", type=int, default=20_000, help="in all, shared among the operations")
    options = parser.parse_args()
    schema = schemathesis.openapi.from_url(f"{options.url}/openapi.json")
    operations = sum(1 for _ in schema.get_all_operations())
    report = fuzz(options.url, -(-options.cases // operations))
    print(f"{report['cases']:,} cases, statuses {report['statuses']}, {len(report['failures'])} failures")
    for failure in report["failures"][:10]:
        print(failure)
    raise SystemExit(bool(report["failures"]))


if __name__ == "__main__":
    main()
