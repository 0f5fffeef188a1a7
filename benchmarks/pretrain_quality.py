"""The reference beside a pretraining run: `transformers` fed the same examples for the same minutes.

    python benchmarks/pretrain_quality.py RUN [--minutes 30]

RUN is a finished folder of `heedful pretrain`. BertForPreTraining of the same shape starts from random weights and sees
the run's own examples, in padded batches, with AdamW, warm-up and linear decay as in the run; how many steps fit into
the minutes is measured first, as `heedful pretrain` does. Both models are then scored on the same held-out examples.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

import torch
from padded_batches import padded
from results_file import RESULTS, Table, write_results
from transformers import BertConfig as ReferenceConfig
from transformers import BertForPreTraining

from heedful.checkpoints.encoder_folder import load_for_pretraining
from heedful.checkpoints.folder import read_folder
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import Recipe
from heedful.data.corpus.source import held_out_micro_batches
from heedful.models.bert import BertForPretraining
from heedful.runs.pretraining.plan import Plan
from heedful.tasks.masked_objective import held_out_examples
from heedful.tasks.objectives import MLM
from heedful.tasks.pretraining import evaluate
from heedful.training.process import prepare_process
from heedful.training.run_folder import RunFolder
from heedful.training.schedule import rate_factor

WARM_UP, MEASURED = 4, 10
RESERVE = 0.05


class Reference:
    """transformers' model under the recipe of a plan."""

    def __init__(self, plan: Plan, corpus: Corpus) -> None:
        torch.manual_seed(plan.training.seed)
        self.plan = plan
        self.source = plan.source(corpus, MLM)
        self.model = BertForPreTraining(ReferenceConfig(**asdict(plan.model))).train()
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), eps=plan.training.eps, weight_decay=plan.training.weight_decay, fused=True
        )

    def step(self, number: int, rate: float) -> float:
        """One step; gives its loss."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = self.model(**padded(self.source.step(number)[0])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.plan.training.clip)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return float(loss.detach())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--name", default="pretrain_quality", help="of the JSON file in docs/results")
    a = parser.parse_args()
    prepare_process()
    stored = RunFolder(a.run).stored_as(Plan)
    assert stored is not None, f"{a.run} holds no run"
    plan = stored
    corpus = Corpus.open(plan.corpus)
    trial = Reference(plan, corpus)
    for number in range(WARM_UP):
        trial.step(number, 0.0)
    began = time.perf_counter()
    for number in range(WARM_UP, WARM_UP + MEASURED):
        trial.step(number, 0.0)
    per_step = (time.perf_counter() - began) / MEASURED
    steps = int(a.minutes * 60 * (1 - RESERVE) / per_step)
    plan = plan.with_steps([max(1, round(steps * share)) for share in plan.shares])
    reference, peak = Reference(plan, corpus), plan.training.learning_rate
    start = time.perf_counter()
    for number in range(plan.training.steps):
        loss = reference.step(number, peak * rate_factor(number + 1, plan.training))
        if number % 50 == 0:
            spent = (time.perf_counter() - start) / 60
            print(f"step {number}/{plan.training.steps} loss {loss:.3f} {spent:.1f} min", flush=True)
    minutes = (time.perf_counter() - start) / 60
    reference.model.save_pretrained(a.run / "reference")
    corpus.tokenizer.save(a.run / "reference")
    rows = []
    for name, folder in (("heedful", a.run / "model"), ("transformers", a.run / "reference")):
        model = load_for_pretraining(read_folder(folder), seed=0)
        assert isinstance(model, BertForPretraining)
        assert isinstance(plan.longest, Recipe)
        examples = held_out_examples(corpus, plan.longest)
        with torch.no_grad():
            found = evaluate(model, held_out_micro_batches(examples, plan.batch_sizes[-1], plan.evaluated_examples))
        done = plan.training.steps if name == "transformers" else stored.training.steps
        wall = minutes if name == "transformers" else json.loads((a.run / "timing.json").read_text())["wall"] / 60
        rows.append(
            [name, done, f"{wall:.1f}", *(f"{found[k]:.4f}" for k in ("mlm_loss", "mlm_accuracy", "nsp_accuracy"))]
        )
        print(*rows[-1])
    write_results(
        RESULTS / f"{a.name}.json",
        title="The same minutes with the reference implementation",
        what="Held-out scores of heedful and of transformers' BertForPreTraining, the same examples, the same time",
        tables=[Table(["trainer", "steps", "minutes", "MLM loss", "MLM accuracy", "NSP accuracy"], rows)],
        arguments=f"{a.run.name} --minutes {a.minutes:g}",
    )


if __name__ == "__main__":
    main()
