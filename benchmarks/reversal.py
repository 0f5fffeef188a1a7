"""Say a sequence of symbols backwards: what each decoder can learn, and what becomes of it with length.

    python benchmarks/reversal.py              all runs; those in docs/results/reversal.json already are not repeated
    python benchmarks/reversal.py --afresh     all runs, whatever is there

Short sequences first: decoders 1 and 2, which never hear what they have said, on 3 to 6 symbols; decoder 3, attention
and the Transformer on 3 to 10. Then the last three on 3 to 50. A tenth of all sequences, chosen by a checksum, is never
trained on, and the tests are drawn from that tenth. docs/results gets reversal.json, and reversal.svg with the share
of sequences that are right from the first to the last symbol, by length.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from results_file import RESULTS, Table, write_results
from standalone_svg import panels, standalone

from heedful.data.bitext.pairs import lay_out
from heedful.decoding import greedy
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig, initialise_seq2seq
from heedful.models.transformer import Transformer, TransformerConfig, initialise_transformer
from heedful.views.svg import Curve, line_chart

START, END = 2, 3
SYMBOLS = range(4, 14)
VOCABULARY = SYMBOLS.stop
TESTED = 500  # held-out sequences of each run, and of each length
LENGTHS = range(5, 51, 5)
REPORT_EVERY = 250
# Width of the embeddings and of the states; for the Transformer its width and that inside the feed-forward.
RECURRENT = (64, 256)
TRANSFORMER = (128, 512)
RATES = {"Transformer": 1e-3}
RATE = 2e-3
SEEN = (
    "What is seen: every decoder learns the short task, and none goes beyond the lengths it has seen. Trained on 3 to "
    "50 symbols, the RNN that has to put the whole sequence into one vector gets hardly any of 20 symbols right; with "
    "attention, and in the Transformer, nearly all are right up to 40."
)

Words = tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """A model, the lengths it is trained on, and for how many steps."""

    model: str
    shortest: int
    longest: int
    steps: int
    batch: int = 128  # sequences


SHORT = [
    Run("decoder 1", 3, 6, 1500),
    Run("decoder 2", 3, 6, 1500),
    Run("decoder 3", 3, 10, 2500),
    Run("attention", 3, 10, 1500),
    Run("Transformer", 3, 10, 2000),
]
LONG = [Run(model, 3, 50, 1500, 64) for model in ("decoder 3", "attention", "Transformer")]


def main() -> None:
    """Do what has not been done, and write all of it after every run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "reversal.json")
    parser.add_argument("--afresh", action="store_true")
    arguments = parser.parse_args()
    known = {} if arguments.afresh else earlier(arguments.output)
    done: list[dict[str, Any]] = []
    for run in (*SHORT, *LONG):
        done.append(known.get(run) or measured(run))
        write(arguments.output, done)


def earlier(path: Path) -> dict[Run, dict[str, Any]]:
    """What a results file has of each run."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))["runs"]
    return {Run(**one["run"]): one for one in found}


def measured(run: Run) -> dict[str, Any]:
    """Train and test."""
    model = trained(run)
    rng = random.Random(1)
    mixed = [drawn(rng, rng.randint(run.shortest, run.longest), held_out=True) for _ in range(TESTED)]
    by_length = {n: exact(model, [drawn(rng, n, held_out=True) for _ in range(TESTED)]) for n in LENGTHS}
    return {
        "run": asdict(run),
        "parameters": sum(p.numel() for p in model.parameters()),
        "exact": exact(model, mixed),
        "by_length": {str(n): share for n, share in by_length.items()},
    }


def is_held_out(words: Words) -> bool:
    """Whether a sequence is kept for testing; a tenth is, by checksum."""
    return zlib.crc32(bytes(words)) % 10 == 0


def drawn(rng: random.Random, length: int, held_out: bool) -> Words:
    """A random sequence of this length from one of the two parts."""
    while True:
        words = tuple(rng.choices(SYMBOLS, k=length))
        if is_held_out(words) == held_out:
            return words


def made(name: str, longest: int) -> Seq2Seq | Transformer:
    """A model with weights of its own, by its name."""
    if name == "Transformer":
        width, inner = TRANSFORMER
        config = TransformerConfig(
            VOCABULARY, VOCABULARY, encoder_layers=2, decoder_layers=2, width=width, heads=4, inner=inner,
            pre_norm=True, max_length=longest, dropout=0.0,
        )  # fmt: skip
        transformer = Transformer(config)
        initialise_transformer(transformer, 0)
        return transformer
    embedding, hidden = RECURRENT
    decoder: Any = name.removeprefix("decoder ")
    shape = Seq2SeqConfig(VOCABULARY, VOCABULARY, True, embedding, hidden, decoder=decoder, dropout=0.0)
    recurrent = Seq2Seq(shape)
    initialise_seq2seq(recurrent, 0)
    return recurrent


def trained(run: Run) -> Seq2Seq | Transformer:
    """Train on new sequences in every step; a short warm-up, then down to zero along a cosine."""
    rng = random.Random(0)
    model = made(run.model, max(run.longest, LENGTHS.stop) + 2).train()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    peak = RATES.get(run.model, RATE)
    for step in range(run.steps):
        rate = peak * min((step + 1) / 100, 0.5 + 0.5 * math.cos(math.pi * step / run.steps))
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = [drawn(rng, rng.randint(run.shortest, run.longest), held_out=False) for _ in range(run.batch)]
        bitext = lay_out(*framed(sorted(batch, key=len, reverse=True)))
        loss = F.cross_entropy(model.logits(model(bitext)), bitext.labels)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % REPORT_EVERY == 0:
            print(f"{run.model}, {run.shortest}–{run.longest}: step {step}, {loss:.4f}", file=sys.stderr, flush=True)
    return model.eval()


def framed(sequences: Sequence[Words]) -> tuple[list[list[int]], list[list[int]]]:
    """Sources, and the same backwards as targets, each between start and end symbol."""
    return [[START, *words, END] for words in sequences], [[START, *reversed(words), END] for words in sequences]


@torch.inference_mode()
def exact(model: Seq2Seq | Transformer, sequences: Sequence[Words]) -> float:
    """The share of sequences that greedy search says backwards without a mistake."""
    ordered = sorted(sequences, key=len, reverse=True)
    memory: Any = model.encode(lay_out(*framed(ordered)).source)
    longest = [len(words) + 2 for words in ordered]  # room for one symbol too many, which is a mistake
    step: Any = model.step
    found = greedy(step, model.start(memory, 1, max(longest)), longest, START, END)
    right = [one.finished and one.ids == words[::-1] for words, one in zip(ordered, found, strict=True)]
    return sum(right) / len(right)


def write(path: Path, done: Sequence[dict[str, Any]]) -> None:
    """Tables and picture of all that has been done."""
    picture = path.with_suffix(".svg")
    picture.write_text(standalone(panels(charts(done))), encoding="utf-8")
    write_results(
        path,
        title="Reversal of symbol sequences",
        what=f"Sequences of {len(SYMBOLS)} different symbols are said backwards; the share of held-out sequences that "
        f"greedy search gets right from the first to the last symbol, of {TESTED} each",
        tables=[
            Table(
                [
                    "model",
                    "trained on lengths",
                    "parameters",
                    "steps",
                    "sequences a step",
                    "exact on these lengths",
                ],
                [_summary(one) for one in done],
            ),
            Table(
                ["model", "trained on lengths", *(f"exact at {n}" for n in LENGTHS)],
                [[*_name(one), *(f"{share:.1%}" for share in one["by_length"].values())] for one in done],
            ),
        ],
        remarks=[SEEN, f"![Exact match by length]({RESULTS.name}/{picture.name})"],
        more={"runs": list(done)},
    )


def charts(done: Sequence[dict[str, Any]]) -> dict[str, str]:
    """A chart for the short and one for the long training, by its heading."""
    drawn_charts = {}
    for runs, heading in ((SHORT, "Trained on short sequences"), (LONG, "Trained on 3 to 50 symbols")):
        wanted = [one for one in done if Run(**one["run"]) in runs]
        curves = [
            Curve(one["run"]["model"], [(int(n), 100 * share) for n, share in one["by_length"].items()])
            for one in wanted
        ]
        if curves:
            drawn_charts[f"{heading}: exact, %"] = line_chart(heading, curves, LENGTHS[-1], x_name="symbols")
    return drawn_charts


def _name(one: dict[str, Any]) -> list[str]:
    return [one["run"]["model"], f"{one['run']['shortest']}–{one['run']['longest']}"]


def _summary(one: dict[str, Any]) -> list[Any]:
    run = Run(**one["run"])
    return [*_name(one), one["parameters"], run.steps, run.batch, f"{one['exact']:.1%}"]


if __name__ == "__main__":
    main()
