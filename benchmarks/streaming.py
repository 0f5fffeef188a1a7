"""Many short lines through the command line: memory over time, and speed against the first few of the same lines.

    HEEDFUL_DATA=… python benchmarks/streaming.py

Run it on an idle machine. Short and long runs take turns; the speed is what `heedful embed` reports itself.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from materials import minilm, short_lines
from results_file import RESULTS, Table, write_results

MEGABYTE = 1e6


@dataclass(frozen=True)
class Run:
    """What one run of the command showed."""

    tokens_per_second: float
    memory: list[float]  # MB of the process and its children, sampled over time


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "streaming.json")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=1000, help="lines of the short runs")
    parser.add_argument("--rounds", type=int, default=3, help="long runs; each has a short run before and after it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{line}\n" for line in short_lines(arguments.lines)]
        many, few = Path(folder) / "many.txt", Path(folder) / "few.txt"
        many.write_text("".join(lines), encoding="utf-8")
        few.write_text("".join(lines[: arguments.first]), encoding="utf-8")
        short, long = [embed(few)], []
        for _ in range(arguments.rounds):
            long.append(embed(many))
            short.append(embed(few))
    few_speed, many_speed = (statistics.median(r.tokens_per_second for r in runs) for runs in (short, long))
    speeds = [
        [f"first {arguments.first:,} lines", f"{few_speed:,.0f}", len(short)],
        [f"all {arguments.lines:,} lines", f"{many_speed:,.0f}", len(long)],
    ]
    write_results(
        arguments.output,
        "Streaming",
        f"`heedful embed` of {arguments.lines:,} English sentences of at most 120 characters with all-MiniLM-L6-v2: "
        "the memory of the process over time, and the speed against that of the first lines.",
        [
            Table(["input", "tokens/s (median)", "runs"], speeds),
            Table(["run", "peak MB", "at 10 %", "at 25 %", "at 50 %", "at 75 %", "at the end"], curves(long)),
        ],
        [f"Speed of the long run / speed of the short run: {many_speed / few_speed:.3f}."],
    )


def curves(runs: list[Run]) -> list[list[str]]:
    """For each run the peak and the memory at some moments of it."""
    moments = (0.1, 0.25, 0.5, 0.75, 1.0)
    rows = []
    for number, run in enumerate(runs, start=1):
        samples = [run.memory[round(moment * (len(run.memory) - 1))] for moment in moments]
        rows.append([str(number), *(f"{mb:.0f}" for mb in (max(run.memory), *samples))])
    return rows


def embed(lines: Path) -> Run:
    """Run the command to its end and watch its memory."""
    output = lines.with_suffix(".npy")
    command = [sys.executable, "-m", "heedful", "embed", str(minilm()), str(lines), "-o", str(output), "--normalize"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    watched = psutil.Process(process.pid)
    memory = []
    while process.poll() is None:
        memory.append(resident(watched))
        time.sleep(0.1)
    assert process.stderr is not None
    told = process.stderr.read()
    speed = re.search(r"([\d,]+) tokens/s", told)
    if process.returncode or speed is None:
        sys.exit(f"the command failed:\n{told}")
    output.unlink()
    return Run(float(speed[1].replace(",", "")), [mb for mb in memory if mb])


def resident(process: psutil.Process) -> float:
    """The megabytes that a process and its children hold, 0 once it is gone."""
    try:
        return float(sum(p.memory_info().rss for p in [process, *process.children(recursive=True)]) / MEGABYTE)
    except psutil.NoSuchProcess:
        return 0.0


if __name__ == "__main__":
    main()
