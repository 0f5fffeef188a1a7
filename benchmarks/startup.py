"""How long the command takes before it does anything: `heedful --help`, and `import heedful`.

python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from results_file import RESULTS, Table, write_results

ROUNDS = 15
HEEDFUL = str(Path(sys.executable).with_name("heedful"))
COMMANDS = {
    "heedful --help": [HEEDFUL, "--help"],
    "heedful embed --help": [HEEDFUL, "embed", "--help"],
    "python -c 'import heedful'": [sys.executable, "-c", "import heedful"],
    "python -c pass": [sys.executable, "-c", "pass"],
}


def seconds(command: list[str]) -> float:
    """The wall time of one run."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Run the commands in turns and write the medians."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    rows = [[name, f"{statistics.median(t):.3f}", f"{max(t):.3f}"] for name, t in times.items()]
    write_results(
        RESULTS / "startup.json",
        title="Start-up",
        what=f"Wall time of whole commands, {ROUNDS} rounds. Neither imports torch, as a test shows.",
        tables=[Table(["command", "median s", "longest s"], rows)],
    )


if __name__ == "__main__":
    main()
