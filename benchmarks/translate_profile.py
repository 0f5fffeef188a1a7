"""What our decoding spends its time on, on one core.

    HEEDFUL_DATA=… python benchmarks/translate_profile.py RUN

RUN is a trained Transformer. The first sentences of Multi30k's test set are decoded by a beam of 5, batch after batch
on one thread, once to warm up and once under torch's profiler. The speed of the products is compared with that of one
large product on the same core, which is as fast as they could be.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from materials import multi30k
from results_file import RESULTS, Table, write_results
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from heedful.data.batching import cut_by_tokens
from heedful.data.bitext.reading import read_pairs
from heedful.decoding import Beam
from heedful.inference.load import load_translator
from heedful.inference.translator import Translator, tokens_at_once
from heedful.nn.packed_linear import PackedLinear
from heedful.tasks.translate_decoding import longest_translation
from heedful.tasks.translate_search import search

BEAM = 5
SHOWN = 8
PRODUCTS = "mkldnn::_linear_pointwise"


def main() -> None:
    """Decode twice and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "translate_profile.json")
    a = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    translator = load_translator(a.run, "cpu", "heedful")
    folder = translator.folder
    texts = [
        one.source for one in read_pairs([multi30k("test_2016_flickr.tsv")], *folder.names).examples[: a.sentences]
    ]
    sources = [one.ids for one in folder.sides.source.encode_batch(texts, folder.max_length, offsets=False)]
    decode(translator, sources)
    operations = counted_products(translator)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        decode(translator, sources)
    events = sorted(seen.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    products = next(event.self_cpu_time_total for event in events if event.key == PRODUCTS)
    rows = [[event.key, event.count, f"{event.self_cpu_time_total / total:.1%}"] for event in events[:SHOWN]]
    rest = events[SHOWN:]
    more = sum(event.self_cpu_time_total for event in rest) / total
    rows.append([f"{len(rest)} others", sum(event.count for event in rest), f"{more:.1%}"])
    write_results(
        a.output,
        "Translation: where decoding spends its time",
        f"{len(sources)} sentences of Multi30k's test set by a beam of {BEAM} on one core: {total / 1e6:.1f} seconds "
        "under torch's profiler",
        [Table(["operation", "calls", "share of the time"], rows)],
        [
            f"The products ({PRODUCTS}) made {sum(operations) / products / 1e3:.0f} billion operations a second; one "
            f"product of 1,024 × 1,024 matrices makes {fastest():.0f} billion on the same core."
        ],
        arguments=f"RUN --sentences {a.sentences}",
    )


def decode(translator: Translator, sources: list[list[int]]) -> None:
    """All sentences, in the batches that the translator makes."""
    folder = translator.folder
    for numbers in cut_by_tokens([len(ids) for ids in sources], tokens_at_once(folder.model)):
        given = [sources[number] for number in numbers]
        longest = [longest_translation(len(ids), folder.max_length) for ids in given]
        search(folder.model, given, longest, translator.symbols, Beam(BEAM))


def counted_products(translator: Translator) -> list[float]:
    """A list that gets the number of operations of every product from now on."""
    operations: list[float] = []

    def count(layer: PackedLinear, given: tuple[Tensor], result: Tensor) -> None:
        operations.append(2.0 * result.numel() * given[0].shape[-1])

    for module in translator.folder.model.modules():
        if isinstance(module, PackedLinear):
            module.register_forward_hook(count)
    return operations


def fastest(seconds: float = 1.0) -> float:
    """Billions of operations a second of one large product."""
    size = 1024
    product = PackedLinear(nn.Linear(size, size))
    x, count = torch.randn(size, size), 0
    with torch.inference_mode():
        product(x)
        start = time.perf_counter()
        while (taken := time.perf_counter() - start) < seconds:
            product(x)
            count += 1
    return 2 * size**3 * count / taken / 1e9


if __name__ == "__main__":
    main()
