"""What this machine has, and how many threads suit it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from heedful.data.batching import flat_batch
from heedful.inference.int8 import int8_told
from heedful.inference.workers import worker_pool
from heedful.models.bert import initialise, sized
from heedful.models.encoder import Encoder
from heedful.nn.packed_linear import can_pack
from heedful.training.distributed import own_device
from heedful.training.precision import resolved_precision
from heedful.training.processor import bfloat16_speed, speed_told
from heedful.training.processor_name import instructions, processor_name

PACKAGES = ("heedful", "torch", "tokenizers", "safetensors", "numpy", "jieba", "transformers")


def examine() -> dict[str, str]:
    """The findings of `heedful doctor`, by name."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    found |= {name: _version(name) for name in PACKAGES}
    found["processor"] = processor_name()
    found["instructions"] = ", ".join(instructions()) or "unknown"
    found["cores"] = f"{_usable_cores()} usable of {os.cpu_count()}"
    found["vector instructions"] = torch.backends.cpu.get_cpu_capability()
    found["GPU"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    found["memory"] = memory()
    found["disk"] = f"{shutil.disk_usage(Path.cwd()).free / 2**30:.1f} GiB free here"
    found["load"] = _load()
    found["threads"] = _best_threads()
    found["bfloat16"] = speed_told(bfloat16_speed())
    found["int8"] = int8_told()
    found["precision"] = str(resolved_precision("auto", own_device()))
    return found


def memory() -> str:
    """How much memory there is and how much of it is free."""
    info = Path("/proc/meminfo")
    if not info.exists():
        return "unknown"
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in info.read_text().splitlines()}
    return f"{sizes['MemAvailable'] / 2**20:.1f} GiB free of {sizes['MemTotal'] / 2**20:.1f}"


def _usable_cores() -> int | None:
    # Not every system can tie a process to some of its cores.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _load() -> str:
    if not hasattr(os, "getloadavg"):
        return "unknown"
    return f"{os.getloadavg()[0]:.2f} (above 0.7 the figures below are too low)"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _best_threads() -> str:
    """Time a small BERT with several numbers of threads, each thread with batches of its own, as `embed` runs it."""
    before = torch.get_num_threads()
    config = sized("mini", 1000)
    model = config.build().eval()
    initialise(model, config, seed=0)
    if can_pack():
        model.pack()
    speeds: dict[int, float] = {}
    for threads in _thread_counts(before):
        torch.set_num_threads(threads)
        speeds[threads] = max(_tokens_per_second(model) for _ in range(3))
    torch.set_num_threads(before)
    best = max(speeds, key=lambda n: speeds[n])
    listed = ", ".join(f"{n}: {speed:,.0f} tokens/s" for n, speed in speeds.items())
    return f"{best} work best ({listed}; a BERT-mini); torch uses {before} now, OMP_NUM_THREADS changes it"


def _thread_counts(most: int) -> list[int]:
    """1, 2, 4 … below `most`, and `most` itself."""
    return [*(2**i for i in range((most - 1).bit_length())), most]


def _tokens_per_second(model: Encoder) -> float:
    batch = flat_batch([[7] * 64] * 16)
    rounds = 8

    def run(pool: ThreadPoolExecutor) -> None:
        def one(_: int) -> None:
            with torch.inference_mode():
                model(batch)

        list(pool.map(one, range(rounds)))

    with worker_pool() as pool:
        run(pool)  # warms up
        start = time.perf_counter()
        run(pool)
        return rounds * len(batch.ids) / (time.perf_counter() - start)
