"""More than one machine, shown on one: a Ray cluster of two nodes that loses one, and models in slices over processes.

    python benchmarks/scale.py                          writes docs/results/scale.json; needs the extra ray
    python benchmarks/scale.py --only slices --output scale.json

These are equalities, not speeds. A node of the cluster has one core; the second one is killed (its processes with
SIGKILL) while corpus or vectors are made, and the files must be those of a run without Ray, byte for byte. Models are
pretrained under torchrun over gloo, and each step's loss is held against that of one process.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from results_file import RESULTS, Table, write_results

import heedful
from heedful.data.corpus.build import BuildProgress, ReadingSettings, build_corpus
from heedful.data.processes import Workers
from heedful.data.ray_engine import ray_engine
from heedful.inference.embed_file import EmbedProgress, embed_file
from heedful.inference.load import load_embedder
from heedful.text.tokenizer import Tokenizer
from heedful.training.events import Progress

PATIENCE = 600  # seconds after which a process counts as hanging
MATERIAL = (
    "toy world --size normal",
    "tokenizer train world/documents.en.txt -o tokenizer --vocab-size 600",
    "corpus build world/documents.en.txt -o corpus --tokenizer tokenizer",
    "new model --tokenizer tokenizer --size tiny",
)
UNIT_BYTES = 40_000  # of text a shard, so that a small text has many
TEXTS = 10 * 1024
STEPS, HALF = 20, 10
TOLERANCE = 1e-5
SMALL = {"num_cpus": 1, "object_store_memory": 80_000_000}


def prepare(folder: Path) -> None:
    """The toy world, and what runs start from."""
    for arguments in MATERIAL:
        command = [sys.executable, "-m", "heedful", *arguments.split()]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE)


class TwoNodes:
    """A cluster of two nodes on this machine, of which the second can be killed and replaced."""

    def __init__(self) -> None:
        # A worker's niceness is 15 otherwise, and it waits for whatever else the machine does.
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
        from ray.cluster_utils import Cluster

        self.cluster: Any = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
        self.second: Any = None

    def complete(self) -> str:
        """See that there are two nodes; gives the address."""
        if self.second is None:
            self.second = self.cluster.add_node(**SMALL)
            self.cluster.wait_for_nodes()
        return str(self.cluster.address)

    def lose_one(self) -> None:
        """Kill the second node and all of its processes."""
        if self.second is not None:
            self.cluster.remove_node(self.second, allow_graceful=False)
            self.second = None


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    """The cluster for the time of a block."""
    nodes = TwoNodes()
    try:
        yield nodes
    finally:
        nodes.cluster.shutdown()


def digests(place: Path) -> dict[str, str]:
    """The SHA-256 of a file, or of every file of a folder."""
    files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
    return {str(file.relative_to(place)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def corpus(folder: Path, name: str, workers: Workers, on_shard: Callable[[int], None] = lambda done: None) -> Path:
    """A corpus of many small shards."""

    def tell(progress: BuildProgress) -> None:
        on_shard(progress.shards)

    text, out = str(folder / "world/documents.en.txt"), folder / name
    reading = ReadingSettings(unit_bytes=UNIT_BYTES)
    build_corpus([text], out, Tokenizer.load(folder / "tokenizer"), reading=reading, workers=workers, on_progress=tell)
    return out


def vectors(folder: Path, name: str, engine: Any = None, on_texts: Callable[[int], None] = lambda done: None) -> Path:
    """The vectors of the world's sentences, again and again."""
    sentences = [line for line in (folder / "world/documents.en.txt").read_text("utf-8").splitlines() if line]
    texts = (sentences[number % len(sentences)] for number in range(TEXTS))
    model, out = load_embedder(folder / "model", "cpu"), folder / f"{name}.npy"
    wanted = model.features([-1], "concat", None, "sentence", False)

    def tell(progress: EmbedProgress) -> None:
        on_texts(progress.texts)

    embed_file(model, texts, out, wanted, on_progress=tell, engine=engine)
    return out


def at(moment: int, call: Callable[[], None]) -> Callable[[int], None]:
    """Do something once, when so much is done."""
    done: list[int] = []

    def hear(count: int) -> None:
        if count >= moment and not done:
            done.append(count)
            call()

    return hear


def lost_nodes(folder: Path) -> Table:
    """Corpus and vectors on two nodes, of which one is lost, against those made without Ray."""
    expected = {"corpus": digests(corpus(folder, "corpus-local", 1)), "vectors": digests(vectors(folder, "local"))}
    shards = sum(name.endswith(".safetensors") for name in expected["corpus"])
    moments: Sequence[tuple[str, str, int]] = (
        ("corpus", "nothing lost", 1 << 60),
        ("corpus", "midway", shards // 2),
        ("corpus", "before the last shard", shards - 1),
        ("vectors", "midway", TEXTS // 2),
    )
    rows = []
    with two_nodes() as nodes:
        for number, (what, when, moment) in enumerate(moments):
            lose = at(moment, nodes.lose_one)
            with ray_engine(nodes.complete()) as engine:
                name = f"{what}-{number}"
                made = corpus(folder, name, engine, lose) if what == "corpus" else vectors(folder, name, engine, lose)
            found = digests(made)
            equal = sum(a == b for a, b in zip(sorted(found.values()), sorted(expected[what].values()), strict=True))
            rows.append([what, when, f"{equal} of {len(expected[what])} files equal"])
            print(*rows[-1], sep="  |  ", flush=True)
    return Table(("made on two nodes", "one of them killed", "against a run without Ray"), rows)


def rank(folder: Path, run: Path, options: Sequence[str]) -> None:
    """One process of a run: pretrain, and note the loss of every step."""
    losses: dict[int, float] = {}

    def hear(event: Any) -> None:
        if isinstance(event, Progress):
            losses[event.step] = sum(event.losses.values())

    heedful.pretrain(
        folder / "corpus", output=run, size="tiny", init="random", dropout=0.0, batch_size=16, phases="32:100%",
        budget=f"{STEPS}steps", learning_rate=1e-3, checkpoint_every=HALF, eval_every=0, precision="float32",
        shard="shard" in options, resume="resume" in options, on_event=hear, progress=False,
    )  # fmt: skip
    if os.environ.get("RANK", "0") == "0":
        run.with_suffix(".json").write_text(json.dumps(losses))


def pretrained(folder: Path, run: Path, ranks: int, *options: str) -> dict[int, float]:
    """The losses by step of a run in so many processes."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    command = [sys.executable, *launcher, __file__, "rank", str(folder), str(run), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        sys.exit(done.stderr)
    return {int(step): loss for step, loss in json.loads(run.with_suffix(".json").read_text()).items()}


def slices(folder: Path) -> Table:
    """Models whole and in slices over processes, and those that go on from a checkpoint of four."""
    one = pretrained(folder, folder / "one", 1)
    rows = []

    def note(what: str, found: dict[int, float]) -> None:
        worst = max(abs(found[step] - one[step]) for step in found)
        rows.append([what, len(found), f"{worst:.1e}", "yes" if worst <= TOLERANCE else "no"])
        print(*rows[-1], sep="  |  ", flush=True)

    note("2 processes, each the whole model", pretrained(folder, folder / "whole", 2))
    note("2 processes, slices", pretrained(folder, folder / "two", 2, "shard"))
    four = folder / "four"
    note("4 processes, slices", pretrained(folder, four, 4, "shard"))
    shutil.rmtree(four / "checkpoints" / f"step-{STEPS:06d}")
    shutil.rmtree(four / "model")
    for ranks, how in ((1, ()), (2, ("shard",)), (2, ())):
        again = folder / f"again-{ranks}-{'-'.join(how)}"
        shutil.copytree(four, again)
        told = "slices" if how else "whole"
        note(f"from step {HALF} of the 4: {ranks} process{'es' * (ranks > 1)}, {told}",
             pretrained(folder, again, ranks, "resume", *how))  # fmt: skip
    return Table(
        ("run", "steps", "largest difference of a step's loss from one process", f"within {TOLERANCE:g}"), rows
    )


def main() -> None:
    """Measure, and write the results."""
    if sys.argv[1:2] == ["rank"]:
        rank(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["ray", "slices"])
    parser.add_argument("--output", type=Path, default=RESULTS / "scale.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        tables = [lost_nodes(folder)] if options.only != "slices" else []
        tables += [slices(folder)] if options.only != "ray" else []
    write_results(
        options.output,
        "More than one machine",
        "Equalities, on the toy world: corpus and vectors on a Ray cluster of two nodes with one core each, both on "
        "this machine; tiny BERTs pretrained without dropout under torchrun over gloo in float32, each step's loss.",
        tables,
    )


if __name__ == "__main__":
    main()
