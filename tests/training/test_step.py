"""A step is the same however its batch is cut, and harmless when its loss is not finite."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from heedful.data.batching import flat_batch
from heedful.models.bert import BertConfig, BertForPretraining, initialise
from heedful.schema import Batch
from heedful.training.distributed import World
from heedful.training.free_memory import available
from heedful.training.memory import estimate, is_out_of_memory
from heedful.training.optimiser import Optimiser
from heedful.training.step import OutOfMemory, Stepper, seed_dropout
from heedful.training.timing import Clock
from heedful.training.training_config import TrainingConfig

CONFIG = TrainingConfig(steps=60, learning_rate=1e-3, clip=0.0)


def stepper_of(model: nn.Module, objective: object, config: TrainingConfig = CONFIG) -> Stepper:
    return Stepper(model, objective, Optimiser(model, config), config, World(), Clock(), lambda: None)  # type: ignore[arg-type]


def first_gradients(model: nn.Module, objective: object, micro_batches: Sequence[object]) -> dict[str, Tensor]:
    """Adam's means after one step from zero are the gradients times 1 - beta1."""
    model = copy.deepcopy(model)
    optimiser = Optimiser(model, CONFIG)
    Stepper(model, objective, optimiser, CONFIG, World(), Clock(), lambda: None).take(0, micro_batches)  # type: ignore[arg-type]
    return {name: tensor for name, tensor in optimiser.moments().items() if name.startswith("mean.")}


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor], relative: float) -> None:
    for name, tensor in ours.items():
        assert (tensor - theirs[name]).norm() <= relative * tensor.norm() + 1e-9, name


@pytest.mark.parametrize("accumulate", [2, 5, 12])
def test_micro_batches_add_up_to_the_batch(trainee: ModuleType, accumulate: int) -> None:
    model, source = trainee.Net(16, 0.0), trainee.RandomRows()
    whole = first_gradients(model, trainee.objective, source.step(0, 0, 1, 1))
    assert_same(whole, first_gradients(model, trainee.objective, source.step(0, 0, 1, accumulate)), 1e-6)
    one, many = stepper_of(model, trainee.objective), stepper_of(copy.deepcopy(model), trainee.objective)
    for number in range(50):
        expected = one.take(number, source.step(number, 0, 1, 1)).losses
        assert many.take(number, source.step(number, 0, 1, accumulate)).losses == pytest.approx(expected, rel=1e-4)


@dataclass(frozen=True)
class Masked:
    """Sequences whose first tokens are to be guessed, each with another number of them."""

    batch: Batch
    places: Tensor
    wanted: Tensor
    follows: Tensor

    @property
    def counts(self) -> dict[str, int]:
        return {"mlm": len(self.places), "nsp": len(self.follows)}

    @property
    def tokens(self) -> int:
        return len(self.batch.ids)

    @property
    def padding(self) -> int:
        return 0

    def to(self, device: str) -> Masked:
        return self


def masked(sequences: Sequence[Sequence[int]]) -> Masked:
    batch = flat_batch(sequences)
    starts = [sum(batch.lengths[:i]) for i in range(len(batch.lengths))]
    places = [start + i for start, n in zip(starts, batch.lengths, strict=True) for i in range(1, n - 2)]
    wanted = [(int(batch.ids[i]) * 7) % 30 for i in places]
    return Masked(batch, torch.tensor(places), torch.tensor(wanted), torch.tensor([len(s) % 2 for s in sequences]))


def pretraining(model: nn.Module, micro_batch: Masked) -> dict[str, Tensor]:
    assert isinstance(model, BertForPretraining)
    states = model.encoder(micro_batch.batch).last
    starts = torch.tensor([0, *micro_batch.batch.lengths[:-1]]).cumsum(0)
    mlm = nn.functional.cross_entropy(model.mlm_logits(states[micro_batch.places]), micro_batch.wanted, reduction="sum")
    nsp = nn.functional.cross_entropy(model.nsp_logits(states[starts]), micro_batch.follows, reduction="sum")
    return {"mlm": mlm, "nsp": nsp}


def test_micro_batches_add_up_to_the_batch_for_bert(trainee: ModuleType) -> None:
    config = BertConfig(30, 16, 2, 2, 32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForPretraining(config)
    initialise(model, config, seed=0)
    rng = torch.Generator().manual_seed(1)
    sequences = [torch.randint(0, 30, (n,), generator=rng).tolist() for n in (19, 11, 8, 8, 7, 5)]
    whole = first_gradients(model, pretraining, [masked(sequences)])
    cut = first_gradients(model, pretraining, [masked(sequences[:1]), masked(sequences[1:4]), masked(sequences[4:])])
    assert_same(whole, cut, 1e-6)


def test_a_loss_that_is_not_finite_changes_nothing(trainee: ModuleType) -> None:
    model = trainee.Net(16, 0.1)
    optimiser = Optimiser(model, CONFIG)
    micro_batches = trainee.RandomRows().step(0, 0, 1, 2)
    for factor, finite in ((float("nan"), False), (float("inf"), False), (1.0, True)):

        def wrong(model: nn.Module, micro_batch: object, factor: float = factor) -> dict[str, Tensor]:
            return {name: loss * factor for name, loss in trainee.objective(model, micro_batch).items()}

        before = [t.clone() for t in (*model.state_dict().values(), *optimiser.moments().values())]
        taken = Stepper(model, wrong, optimiser, CONFIG, World(), Clock(), lambda: None).take(0, micro_batches)
        after = [*model.state_dict().values(), *optimiser.moments().values()]
        assert taken.finite is finite
        assert all(map(torch.equal, before, after)) is not finite


def test_too_little_memory_is_told_from_other_errors(trainee: ModuleType) -> None:
    model = trainee.Net(16, 0.1)
    micro_batches = trainee.RandomRows().step(0, 0, 1, 2)

    def failing(error: Exception) -> Stepper:
        def objective(model: nn.Module, micro_batch: object) -> dict[str, Tensor]:
            raise error

        return stepper_of(model, objective)

    with pytest.raises(OutOfMemory):
        failing(RuntimeError("DefaultCPUAllocator: can't allocate memory")).take(0, micro_batches)
    with pytest.raises(OutOfMemory):
        failing(MemoryError()).take(0, micro_batches)
    with pytest.raises(RuntimeError, match="shapes"):
        failing(RuntimeError("shapes do not match")).take(0, micro_batches)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory")) and not is_out_of_memory(ValueError("memory"))


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("could not create a primitive", True),
        ("could not execute a primitive", True),
        ("could not create a memory object", True),
        ("could not create a primitive descriptor for the LSTM forward propagation primitive. Run workload …", False),
        ("could not create a memory descriptor", False),
    ],
)
def test_of_what_onednn_says_only_refused_memory_is_that(text: str, memory: bool) -> None:
    assert is_out_of_memory(RuntimeError(text)) is memory


def test_the_seed_of_dropout_depends_on_all_four_numbers() -> None:
    def drawn(*numbers: int) -> float:
        seed_dropout(*numbers)
        return torch.rand(()).item()

    changed = [drawn(1, 2, 3, 4), drawn(0, 2, 3, 4), drawn(1, 0, 3, 4), drawn(1, 2, 0, 4), drawn(1, 2, 3, 0)]
    assert len(set(changed)) == 5 and drawn(1, 2, 3, 4) == changed[0]


def test_needs_are_counted_and_the_look_leaves_no_trace(trainee: ModuleType) -> None:
    model = trainee.Net(64, 0.1)
    micro_batch = trainee.RandomRows(batch=500).step(0, 0, 1, 1)[0]
    needs = estimate(model, Optimiser(model, CONFIG), trainee.objective, micro_batch)
    parameters = sum(p.numel() for p in model.parameters())
    assert needs.gradients == 4 * parameters and needs.moments == pytest.approx(8 * parameters, rel=0.02)
    # Input and output of the norm, of GELU and of dropout are kept, and little else of that size.
    assert needs.activations is not None and 3 < needs.activations / (4 * 500 * 64) < 7
    assert all(p.grad is None for p in model.parameters())
    assert (available() or 0) > 0
