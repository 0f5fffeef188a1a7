"""Whether replaced-token detection (ELECTRA, Clark et al. 2020) pays for a BERT-mini that is trained for minutes.

    HEEDFUL_DATA=… python benchmarks/replaced_tokens.py CORPUS -o DIR [--seconds 600] [--sides masked,replaced-15]

`masked` is what `heedful pretrain CORPUS` does, `masked-30` the same with 30 % hidden. On the other sides a small
generator guesses the masked tokens, what it draws is put in their places, and an encoder of the same shape, with the
same informed start, batches and rates, tells of every token whether it was replaced; that encoder is kept. All are
given the same seconds of the processor, one thread: their steps follow from their speeds, measured in turns, after the
skip-gram minute that they share.

They are judged by transfer, on the training rows that are held out where rates are chosen, and never on dev. A side's
rate is the one that does best with its first encoder. What is in DIR is not made again.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from results_file import RESULTS, Table, write_results
from torch import Tensor, nn
from transfer import WAYS, Bench, Way
from transfer_tables import interval
from transfer_tasks import Task, tasks_named

from heedful.checkpoints.encoder_folder import save_model
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import Recipe
from heedful.data.corpus.source import PretrainingMicroBatch, held_out_micro_batches
from heedful.models.bert import BertConfig, BertForPretraining, initialise, sized
from heedful.models.bert_layers import BertEmbeddings
from heedful.models.electra import ElectraConfig, ReplacedTokenHead, masked_lm
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.runs.pretraining.recipes import SPREAD, WIDTH
from heedful.runs.pretraining.run import prepare
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.runs.pretraining.skip_gram_start import FOLDER as START
from heedful.runs.pretraining.skip_gram_start import counted
from heedful.runs.run import Ready, Stage
from heedful.tasks.masked_objective import held_out_examples
from heedful.training.events import Event, Progress
from heedful.training.precision import resolved_precision
from heedful.training.process import prepare_process
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Hooks, Trainer

WEIGHT = 50.0  # of the discriminator's loss, as in the paper
ROUNDS, TRIAL, WARM = 3, 30, 6  # speed: so many times so many steps, the first of them not counted
TASKS = ("RTE", "STS-B drawn", "CoLA", "SST-2")
RANDOM = "random"


class Side(NamedTuple):
    """How an encoder is pretrained: the share masked, and the generator's layers and width where there is one."""

    masked: float
    layers: int = 0
    width: int = 0


SIDES = {
    "masked": Side(0.4),
    "masked-30": Side(0.3),
    "replaced-15": Side(0.15, 4, 64),
    "replaced-25": Side(0.25, 4, 64),
    "replaced-15-wide": Side(0.15, 2, 256),
}


class ReplacedTokens(nn.Module):
    """An encoder to keep with its head, and a generator that has the encoder's vectors of tokens and places."""

    def __init__(self, started: BertForPretraining, side: Side, seed: int) -> None:
        """`started` is a model as masked pretraining would begin with it."""
        super().__init__()
        assert isinstance(started.encoder.config, BertConfig)
        shape = asdict(started.encoder.config)
        whole = ElectraConfig(**shape, embedding_size=shape["hidden_size"])
        small = replace(
            whole,
            num_hidden_layers=side.layers,
            hidden_size=side.width,
            num_attention_heads=max(1, side.width // 64),
            intermediate_size=4 * side.width,
            initializer_range=round(SPREAD * math.sqrt(WIDTH / side.width), 4),
        )
        self.encoder = started.encoder.without_pooler()
        self.head, self.generator = ReplacedTokenHead(whole), masked_lm(small)
        initialise(self.head, whole, seed)
        initialise(self.generator, small, seed + 1)
        own, given = self.generator.encoder.get_submodule("embeddings"), self.encoder.get_submodule("embeddings")
        assert isinstance(own, BertEmbeddings) and isinstance(given, BertEmbeddings)
        own.token, own.position, own.segment = given.token, given.position, given.segment
        with torch.no_grad():
            self.generator.get_parameter("mlm.bias").copy_(started.get_parameter("mlm.bias"))


def drawn(logits: Tensor) -> Tensor:
    """A piece for each row by the softmax of its logits, (M, V) -> (M,); no gradient goes through it."""
    # torch.multinomial draws V numbers for each row.
    sums = logits.detach().float().softmax(-1).cumsum(-1)
    dice = torch.rand(len(sums), 1) * sums[:, -1:]
    return torch.searchsorted(sums, dice, right=True).squeeze(1).clamp(max=sums.shape[1] - 1)


class Judgement(NamedTuple):
    """What is said of N tokens, M of them masked."""

    guesses: Tensor  # (M, V) the generator's logits
    replaced: Tensor  # (N,) 1 where another token stands now
    told: Tensor  # (N,) the discriminator's logits of that


def judgement(model: ReplacedTokens, micro_batch: PretrainingMicroBatch) -> Judgement:
    """Put what the generator draws in the place of the masked tokens, and ask the discriminator."""
    batch, masked = micro_batch.batch, micro_batch.masked
    guesses = model.generator.mlm_logits(model.generator.encoder.states_at(batch, masked))
    put = drawn(guesses)
    ids = batch.ids.index_copy(0, masked, put)
    replaced = torch.zeros(len(ids)).index_copy(0, masked, (put != micro_batch.labels).float())
    return Judgement(guesses, replaced, model.head(model.encoder(replace(batch, ids=ids)).last).float())


def losses(model: nn.Module, micro_batch: PretrainingMicroBatch) -> dict[str, Tensor]:
    """The generator's loss and the discriminator's, as a sum that is divided by the number of masked tokens."""
    assert isinstance(model, ReplacedTokens)
    found = judgement(model, micro_batch)
    told = F.binary_cross_entropy_with_logits(found.told, found.replaced)
    mlm = summed_cross_entropy(found.guesses, micro_batch.labels)  # uses the logits up: it comes after the drawing
    return {"mlm": mlm + WEIGHT * told * len(micro_batch.labels)}


def examined(model: ReplacedTokens, corpus: Corpus) -> dict[str, float]:
    """Of held-out tokens, 15 % masked: what share is replaced, what is told rightly, and what of the replaced found."""
    torch.manual_seed(0)
    examples = held_out_examples(corpus, Recipe(max_length=128, pairs="none"))
    with torch.no_grad():
        found = [judgement(model.eval(), one) for one in held_out_micro_batches(examples, 32, 512)]
    replaced, told = (torch.cat(some) > 0 for some in list(zip(*found, strict=True))[1:])
    shares = {"replaced": replaced, "told rightly": told == replaced, "found": told[replaced]}
    return {name: round(float(share.float().mean()), 4) for name, share in shares.items()}


class Stopwatch:
    """Hears of the steps of a run, and notes what the processor's clock shows after each."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.times.append(time.process_time())

    def pace(self, first: int = 0) -> float:
        """The mean seconds of a step, after the first ones."""
        return (self.times[-1] - self.times[first]) / (len(self.times) - 1 - first)


class Pretraining:
    """The encoders of all sides from one corpus, each in a folder of its own."""

    def __init__(self, corpus: Path, work: Path, seconds: float, size: str = "mini") -> None:
        self.corpus, self.work, self.seconds, self.size = Corpus.open(corpus), work, seconds, size

    def made(self, sides: Sequence[str], seed: int) -> list[dict[str, Any]]:
        """What there is to tell of each side's run with this seed, which is made unless it is there."""
        tells = {name: self.folder(name, seed) / "made.json" for name in sides}
        missing = [name for name, tell in tells.items() if not tell.exists()]
        start = self._start(seed) if missing else 0.0
        ready = {name: self.ready(name, seed) for name in missing}
        for name, pace in self.paces(ready).items():
            steps = max(2, int((self.seconds - start) / pace))
            told = {"side": name, "seed": seed, "start": round(start, 1), **self.run(name, seed, ready[name], steps)}
            tells[name].write_text(json.dumps(told), encoding="utf-8")
            print(told, flush=True)
        return [json.loads(tell.read_text(encoding="utf-8")) for tell in tells.values()]

    def folder(self, name: str, seed: int) -> Path:
        """Where a run takes place."""
        return self.work / f"{name}-{seed}"

    def _start(self, seed: int) -> float:
        """The seconds of the processor that the skip-gram vectors of this seed have taken."""
        folder = self.folder(START, seed)
        tell, width = folder / "seconds.json", sized(self.size, self.corpus.tokenizer.vocab_size).width
        if not tell.exists():
            shutil.rmtree(folder, ignore_errors=True)  # vectors half made: their time is not known
            before = time.process_time()
            counted(self.corpus, width, seed, Stage(RunFolder(folder)), self.seconds)
            tell.parent.mkdir(parents=True, exist_ok=True)  # too little text has no vectors
            tell.write_text(json.dumps(time.process_time() - before), encoding="utf-8")
        return float(json.loads(tell.read_text(encoding="utf-8")))

    def ready(self, name: str, seed: int) -> Ready:
        """A run that can begin; the number of its steps is not yet known."""
        folder, side, begun = self.folder(name, seed), SIDES[name], self.folder(START, seed) / START
        shutil.rmtree(folder, ignore_errors=True)
        if begun.exists():
            shutil.copytree(begun, folder / START)
        precision = resolved_precision("auto", "cpu").precision
        told: dict[str, Any] = {"size": self.size, "seed": seed, "mask_rate": side.masked, "precision": precision}
        settings = PretrainingSettings(self.corpus.here, folder, budget="1steps", checkpoint_every=0, **told)
        ready = prepare(settings, Stage(RunFolder(folder), resume=True))
        if not side.layers:
            return ready
        assert isinstance(ready.model, BertForPretraining)
        return replace(ready, model=ReplacedTokens(ready.model, side, seed), objective=losses)

    def paces(self, ready: Mapping[str, Ready]) -> dict[str, float]:
        """The seconds of the processor of a step of each run, measured in turns on copies."""
        found: dict[str, list[float]] = {name: [] for name in ready}
        for _ in range(ROUNDS):
            for name, one in ready.items():
                trial = RunFolder(self.work / "trial")
                shutil.rmtree(trial.path, ignore_errors=True)
                found[name].append(_trained(replace(one, model=copy.deepcopy(one.model)), TRIAL, trial).pace(WARM))
        return {name: statistics.median(some) for name, some in found.items()}

    def run(self, name: str, seed: int, ready: Ready, steps: int) -> dict[str, Any]:
        """Train, and leave the encoder as an ordinary folder."""
        folder = RunFolder(self.folder(name, seed))
        spent = steps * _trained(ready, steps, folder).pace()
        save_model(ready.model.get_submodule("encoder"), folder.model, self.corpus.tokenizer, overwrite=True)
        lines = map(json.loads, folder.metrics.read_text(encoding="utf-8").splitlines())
        tokens = max(line.get("tokens", 0) for line in lines)
        shares = examined(ready.model, self.corpus) if isinstance(ready.model, ReplacedTokens) else {}
        return {"steps": steps, "tokens": tokens, "training": round(spent, 1), **shares}


def _trained(ready: Ready, steps: int, folder: RunFolder) -> Stopwatch:
    """So many steps, and how long they took."""
    watch, training = Stopwatch(), replace(ready.plan.training, steps=steps)
    Trainer(ready.model, ready.objective, ready.source, training, folder, Hooks(on_event=watch), device="cpu").run()
    return watch


def scores(task: Task, way: Way, side: str, folders: Sequence[Path], asked: Any) -> tuple[float, list[float]]:
    """A side's rate, and the scores of its models with it, model by model and in each run by run."""
    weights = RANDOM if side == RANDOM else "own"

    def bench(number: int, seed: int) -> Bench:
        output = asked.work / f"scores-{side}-{number}-{seed}.json"  # runs that choose have no seed in their names
        return Bench(task, folders[number], output, asked.work, asked.limit)

    rate = bench(0, 1).chosen(way, weights)
    places = [(number, seed) for number in range(len(folders)) for seed in range(1, 1 + asked.runs)]
    return rate, [bench(*place).score(way, weights, rate, place[1], choosing=True) for place in places]


def compared(way: Way, tasks: Sequence[Task], folders: Mapping[str, Sequence[Path]], asked: Any) -> list[list[Any]]:
    """A row for each task and one for the mean of all: the scores, and how far others are from the first, by run."""
    rows, every = [], []
    for task in tasks:
        found = {side: scores(task, way, side, models, asked) for side, models in folders.items()}
        every.append([some for _, some in found.values()])
        told = [f"{statistics.mean(some):.4f} ({rate:g})" for rate, some in found.values()]
        judged = f"{task.metric}, {len(task.choosing_rows(asked.limit)[1])} rows"
        rows.append([f"{task.name}, {way.name}", judged, *told, *_gaps(every[-1])])
    means = [[statistics.mean(one) for one in zip(*some, strict=True)] for some in zip(*every, strict=True)]
    return [*rows, [f"all, {way.name}", "", *(f"{statistics.mean(some):.4f}" for some in means), *_gaps(means)]]


def _gaps(sides: Sequence[Sequence[float]]) -> list[str]:
    """What the sides between the first and the random one have more than the first."""
    return [interval([a - b for a, b in zip(side, sides[0], strict=True)]) for side in sides[1:-1]]


def main() -> None:
    """Pretrain, judge, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("-o", "--work", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--seconds", type=float, default=600, help="of the processor, for each pretraining")
    parser.add_argument("--sides", default="masked,replaced-15,replaced-25", help=f"of {', '.join(SIDES)}")
    parser.add_argument("--seeds", default="0,1", help="of the pretraining")
    parser.add_argument("--runs", type=int, default=2, help="of each task on each model")
    parser.add_argument("--tasks", nargs="+", default=TASKS, metavar="TASK")
    parser.add_argument("--limit", type=int, help="training rows at most, for a trial")
    parser.add_argument("--results", type=Path, default=RESULTS / "replaced_tokens.json")
    asked = parser.parse_args()
    prepare_process()
    torch.set_num_threads(1)
    asked.work.mkdir(parents=True, exist_ok=True)
    sides, seeds, tasks = (
        asked.sides.split(","),
        [int(seed) for seed in asked.seeds.split(",")],
        tasks_named(asked.tasks),
    )
    bench = Pretraining(asked.corpus, asked.work, asked.seconds)
    made = [one for seed in seeds for one in bench.made(sides, seed)]
    folders = {side: [RunFolder(bench.folder(side, seed)).model for seed in seeds] for side in sides}
    folders[RANDOM] = folders[sides[0]][:1]  # which gives the shape
    columns = list(dict.fromkeys(column for one in made for column in one))
    heads = ["task", "judged by", *folders, *(f"{side} − {sides[0]} (95 %)" for side in sides[1:])]
    write_results(
        asked.results,
        "Replaced-token detection for small models",
        "Encoders that learned to tell replaced tokens (ELECTRA) beside those of `heedful pretrain`, which hides 40 %: "
        f"BERT-mini, {asked.seconds:g} seconds of the processor each, one thread, the skip-gram start among them. "
        "Judged by transfer on training rows that are held out, those that rates are chosen on; dev was never seen",
        [
            Table(columns, [[one.get(column, "") for column in columns] for one in made]),
            Table(heads, [row for way in WAYS for row in compared(way, tasks, folders, asked)]),
        ],
        [
            "Start and training are seconds of the processor. Of held-out tokens with 15 % masked so many are "
            "replaced, so many told rightly, and so many of the replaced ones found.",
            f"Scores are means of {len(seeds)} encoders, {asked.runs} runs each, with the rate in brackets, chosen on "
            "the same rows; the interval is Student's, of the differences run by run. CoLA's threshold is chosen on "
            "the rows that judge, on all sides.",
        ],
    )


if __name__ == "__main__":
    main()
