"""More than one machine, shown on one: a Ray cluster of two nodes that loses one, and models in slices over processes.

    python benchmarks/scale.py                          writes docs/results/scale.json; needs the extra ray
    python benchmarks/scale.py --only slices            the second table, beside the first one of that file

These are equalities, not speeds. A node of the cluster has one core; the second one is killed (its processes with
SIGKILL) while text is read and corpus or vectors are written, and the files must be those of a run without Ray, byte
for byte. Models are trained under torchrun over gloo, by every kind of run, and each step's loss is held against that
of one process.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from results_file import RESULTS, Table, write_results
from sliced_runs import Losses, difference, gone_on, trained

from heedful.data.corpus import pieces
from heedful.data.corpus.build import BuildProgress, ReadingSettings, build_corpus
from heedful.data.processes import Workers
from heedful.data.ray_engine import ray_engine
from heedful.inference.embed_file import EmbedProgress, embed_file
from heedful.inference.load import load_embedder
from heedful.text.tokenizer import Tokenizer

PATIENCE = 600  # seconds after which a process counts as hanging
MATERIAL = (
    "toy world --size normal",
    "tokenizer train world/documents.en.txt -o tokenizer --vocab-size 600",
    "corpus build world/documents.en.txt -o corpus --tokenizer tokenizer",
    "corpus build world/documents.en.txt -o words --tokenizer tokenizer --words",
    "new model --tokenizer tokenizer --size tiny",
)
UNIT_BYTES = 40_000  # of text a shard, so that a small text has many
TEXTS = 10 * 1024
STEPS, FEW_STEPS = 20, 4
REMARK = (
    "In float32 a sum in another order is another number, Adam divides even the smallest gradient by its own size, and "
    "so the losses of a Transformer may drift apart with the steps. No second process is needed for it: the first "
    "column is one process that cuts its batches into other micro-batches. In float64 the same runs show what is left "
    "without rounding."
)
TOLERANCE = 1e-5
PARTS = 4  # micro-batches a step, for what rounding alone does in one process
NEW = ("roberta", "xlm-roberta", "distilbert", "albert", "electra", "ernie", "mpnet", "modernbert", "lstm-lm", "gpt2")
TRAINED = {"word2vec": "tiny", "elmo": "nano", "xlnet": "nano"}  # which have tokenizers of their own, and their sizes
FAMILIES = (*NEW, *TRAINED)
SMALL = {"num_cpus": 1, "object_store_memory": 80_000_000}


def prepare(folder: Path) -> None:
    """The toy world, and what runs start from."""
    families = (
        *(f"new {name} --tokenizer tokenizer --size nano --model {name}" for name in NEW),
        *(f"pretrain words -o {name} --model {name} --size {size} --budget 1steps" for name, size in TRAINED.items()),
    )
    if (folder / "dev.tsv").exists():  # which is made last
        return
    folder.mkdir(exist_ok=True)
    for arguments in (*MATERIAL, *families):
        command = [sys.executable, "-m", "heedful", *arguments.split()]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE)
    rows = (folder / "world/sentiment.en/dev.tsv").read_text("utf-8").splitlines(keepends=True)
    (folder / "dev.tsv").write_text("".join(rows[:40]), "utf-8")


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
    pieces.STRETCH_BYTES = UNIT_BYTES  # a small text has many, which the nodes read
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


def runs_to_slice(folder: Path) -> dict[str, Any]:
    """A run of every kind and, under a classifier, every family; without dropout, which each rank draws for itself."""
    exact = {"dropout": 0.0, "precision": "float32", "learning_rate": 1e-3}
    own = {"checkpoint_every": STEPS // 2, "budget": f"{STEPS}steps"}
    few = {"checkpoint_every": FEW_STEPS // 2, "budget": f"{FEW_STEPS}steps"}
    world = folder / "world"

    def finetuning(task: str, data: str, model: str = "model", **more: Any) -> dict[str, Any]:
        given = {"task": task, "model": folder / model, "train": world / data, "batch_size": 16, "limit": 200}
        return {"call": "finetune", "settings": {**exact, **own, **given, **more}}

    def translation(model: str, **more: Any) -> dict[str, Any]:
        pairs = {"train": world / "short.en-zh/train.tsv", "source": "en", "target": "zh"}
        shape = {"model": model, "size": "tiny", "vocab_size": 300, "learning_rate": None}
        return {"call": "train_translator", "settings": {**exact, **own, **pairs, **shape, **more}}

    slow = translation("transformer", warmup=200)
    sentiment = "sentiment.en/train.tsv"
    scored: dict[str, Any] = {"dev": folder / "dev.tsv", "seeds": 2}
    pretraining = {
        "corpus": folder / "corpus", "size": "tiny", "init": "random", "batch_size": 16, "phases": "32:100%",
        "eval_every": 0,
    }  # fmt: skip
    return {
        "pretrain": {"call": "pretrain", "settings": {**exact, **own, **pretraining}},
        "finetune classify, two seeds": finetuning("classify", sentiment, **scored),
        "finetune regress": finetuning("regress", "similarity.en/train.tsv"),
        "finetune tag, a BiLSTM-CRF": finetuning("tag", "tags.en/train.conll", head="bilstm-crf", lstm_width=16),
        "finetune answer": finetuning("answer", "questions.en/train.json", max_length=64),
        "finetune choose, accumulated": finetuning("choose", "choices.en/train.jsonl", accumulate=3),
        "translate train, a Transformer": translation("transformer"),
        "the same in float64": translation("transformer") | {"dtype": "float64"},
        "a Transformer, 200 steps of warm-up": slow,
        "200 steps of warm-up in float64": slow | {"dtype": "float64"},
        "translate train, an RNN with attention": translation("attention"),
        **{f"finetune classify, {name}": finetuning("classify", sentiment, name, **few) for name in FAMILIES},
    }


def slices(folder: Path) -> Table:
    """Runs whole and in slices over processes, and those that go on from a checkpoint of four."""
    runs = runs_to_slice(folder)
    one = trained(runs, folder / "one", 1)
    four = folder / "four"
    in_parts = {name: run | {"settings": run["settings"] | {"accumulate": PARTS}} for name, run in runs.items()}
    ways: dict[str, Callable[[], dict[str, Losses]]] = {
        f"1 process, {PARTS} micro-batches": lambda: trained(in_parts, folder / "parts", 1),
        "2 processes, each the whole model": lambda: trained(runs, folder / "whole", 2),
        "2, slices": lambda: trained(runs, folder / "two", 2, "shard"),
        "4, slices": lambda: trained(runs, four, 4, "shard"),
        "from a checkpoint of the 4: 1 process": lambda: gone_on(runs, four, 1),
        "2, slices, from it": lambda: gone_on(runs, four, 2, "shard"),
        "2, whole, from it": lambda: gone_on(runs, four, 2),
    }
    rows: dict[str, list[Any]] = {name: [name, len(one[name])] for name in runs}
    worst = dict.fromkeys(runs, 0.0)
    for way, train in ways.items():
        for name, found in train().items():
            apart = difference(found, one[name])
            rows[name].append(f"{apart:.1e}" if apart < math.inf else str(found))
            worst[name] = max(worst[name], apart)
            print(name, way, rows[name][-1], sep="  |  ", flush=True)
    for name, row in rows.items():
        row.append("yes" if worst[name] <= TOLERANCE else "no")
    return Table(("run", "steps", *ways, f"all within {TOLERANCE:g}"), list(rows.values()))


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["ray", "slices"])
    parser.add_argument("--output", type=Path, default=RESULTS / "scale.json")
    parser.add_argument("--work", type=Path, help="a folder to keep material and runs in, and to go on with")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.work or Path(name)
        prepare(folder)
        before = json.loads(options.output.read_text())["tables"] if options.only else []
        tables = [lost_nodes(folder) if options.only != "slices" else Table(**before[0])]
        tables += [slices(folder) if options.only != "ray" else Table(**before[1])]
    write_results(
        options.output,
        "More than one machine",
        "Equalities, on the toy world: corpus and vectors on a Ray cluster of two nodes with one core each, both on "
        "this machine; small models trained without dropout under torchrun over gloo, in float32 where "
        "nothing else is said: the largest difference of a step's loss from that of one process.",
        tables,
        [REMARK],
        arguments=f"--only {options.only}" if options.only else "",
    )


if __name__ == "__main__":
    main()
