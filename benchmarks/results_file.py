"""The JSON file that each measurement leaves under docs/results, from which report.py makes docs/results.md."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.atomic import atomic_file
from heedful.inference.machine import memory
from heedful.training.processor_name import generation, instructions, processor_name

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"


@dataclass(frozen=True)
class Table:
    """Numbers in rows, a name over each column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def write_results(
    path: Path,
    title: str,
    what: str,
    tables: Sequence[Table],
    remarks: Sequence[str] = (),
    arguments: str = "",
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write the file, whole or not at all, with the command, the date, the machine and `more`; and show the tables."""
    report = {
        "title": title,
        "what": what,
        "command": f"python benchmarks/{Path(sys.argv[0]).name} {arguments or _told()}".strip(),
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "tables": [asdict(table) for table in tables],
        "remarks": list(remarks),
        **(more or {}),
    }
    with atomic_file(path) as file:
        file.write(json.dumps(report, ensure_ascii=False, indent=1) + "\n")
    for table in tables:
        print("\n" + "  |  ".join(table.columns))
        for row in table.rows:
            print("  |  ".join(map(str, row)))
    print(*remarks, f"-> {path}", sep="\n")


def _told() -> str:
    """The arguments as they would be typed elsewhere: where a folder lies on this machine is nobody's business."""
    return shlex.join(Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:])


def machine() -> str:
    """The processor and what it can, its cores, the memory and the versions that matter for speed."""
    total = memory().rpartition(" of ")[2]
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    processor = f"{processor_name()} ({', '.join(filter(None, [generation(), *instructions()]))})"
    return f"{processor}, {os.cpu_count()} cores, {total} GiB, {versions}"


def load() -> str:
    """How many processes want a core, on average of the last minute: a measurement of speed should start near 0."""
    return f"load of the machine before: {os.getloadavg()[0]:.1f}"
