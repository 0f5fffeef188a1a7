"""The CRF against the enumeration of all labellings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import HeedfulError
from heedful.nn.crf import Crf, bio_transitions

BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
Path = tuple[int, ...]


def random_crf(labels: int, rng: torch.Generator, share: float = 1.0) -> Crf:
    """A CRF of random scores; a `share` of the transitions is allowed, and always those to label 0."""
    allowed = torch.rand(labels, labels, generator=rng) < share
    starts = torch.rand(labels, generator=rng) < share
    allowed[:, 0], starts[0] = True, True
    crf = Crf(labels, allowed, starts).double()
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_(generator=rng)
    return crf


def is_allowed(crf: Crf, path: Path) -> bool:
    return bool(crf.may_start[path[0]]) and all(bool(crf.allowed[i, j]) for i, j in pairwise(path))


def score(crf: Crf, emissions: torch.Tensor, path: Path) -> torch.Tensor:
    total = crf.starts[path[0]] + crf.ends[path[-1]]
    for row, label in zip(emissions, path, strict=True):
        total = total + row[label]
    for i, j in pairwise(path):
        total = total + crf.transitions[i, j]
    return total


def enumerated(crf: Crf, emissions: torch.Tensor) -> tuple[list[Path], torch.Tensor]:
    """All allowed labellings of a sequence and their scores."""
    everything = product(range(len(crf.starts)), repeat=len(emissions))
    paths = [path for path in everything if is_allowed(crf, path)]
    return paths, torch.stack([score(crf, emissions, path) for path in paths])


def runs(emissions: torch.Tensor, lengths: Sequence[int]) -> Iterator[torch.Tensor]:
    return (run for run in emissions.split(list(lengths)) if len(run))


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    labels=st.integers(1, 3),
    share=st.sampled_from([0.3, 0.6, 1.0]),
    seed=st.integers(0, 2**16),
)
def test_loss_gradients_labels_and_marginals(lengths: list[int], labels: int, share: float, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    crf = random_crf(labels, rng, share)
    emissions = torch.randn(sum(lengths), labels, generator=rng, dtype=torch.float64, requires_grad=True)
    loss, truth, best, marginals = torch.zeros((), dtype=torch.float64), [], [], []
    for run in runs(emissions, lengths):
        paths, scores = enumerated(crf, run)
        target = int(torch.randint(len(paths), (), generator=rng))
        loss = loss + scores.logsumexp(0) - scores[target]
        truth += paths[target]
        best.append(list(paths[int(scores.argmax())]))
        one_hot = torch.nn.functional.one_hot(torch.tensor(paths), labels)  # (paths, n, K)
        marginals += (scores.softmax(0)[:, None, None] * one_hot).sum(0).tolist()
    targets = torch.tensor(truth, dtype=torch.long)

    found = crf.loss(emissions, lengths, targets)
    torch.testing.assert_close(found, loss)
    assert [labels for labels in crf.decode(emissions, lengths) if labels] == best
    assert [len(labels) for labels in crf.decode(emissions, lengths)] == lengths
    expected = torch.tensor(marginals, dtype=torch.float64).view(-1, labels)
    torch.testing.assert_close(crf.marginals(emissions, lengths), expected)
    if truth:
        leaves = [emissions, *crf.parameters()]
        theirs = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        for ours, wanted in zip(torch.autograd.grad(found, leaves), theirs, strict=True):
            torch.testing.assert_close(ours, wanted)


def test_a_batch_is_the_sum_of_its_sequences_in_single_precision() -> None:
    rng = torch.Generator().manual_seed(0)
    crf = random_crf(9, rng).float()
    lengths = torch.randint(1, 40, (32,), generator=rng).tolist()
    emissions = torch.randn(sum(lengths), 9, generator=rng)
    targets = torch.randint(9, (len(emissions),), generator=rng)
    pairs = list(zip(emissions.split(lengths), targets.split(lengths), strict=True))
    alone = [crf.loss(run, [len(run)], truth) for run, truth in pairs]
    torch.testing.assert_close(crf.loss(emissions, lengths, targets), torch.stack(alone).sum(), rtol=1e-5, atol=1e-3)
    assert crf.decode(emissions, lengths) == [crf.decode(run, [len(run)])[0] for run, _ in pairs]
    torch.testing.assert_close(crf.marginals(emissions, lengths).sum(-1), torch.ones(len(emissions)))


def test_nothing_to_label() -> None:
    crf = Crf(3)
    none = torch.zeros(0, 3, requires_grad=True)
    for lengths in ([], [0], [0, 0]):
        assert crf.loss(none, lengths, torch.zeros(0, dtype=torch.long)).item() == 0
        assert crf.decode(none, lengths) == [[] for _ in lengths]
        assert crf.marginals(none, lengths).shape == (0, 3)


def test_what_is_forbidden_is_never_decoded_nor_likely_nor_trained() -> None:
    crf = Crf(5, *bio_transitions(BIO))
    emissions = torch.zeros(4, 5)
    emissions[0, 2] = emissions[1, 4] = emissions[3, 4] = 1e4  # I-PER first, I-LOC after it, I-LOC after anything
    [labels] = crf.decode(emissions, [4])
    assert is_allowed(crf, tuple(labels)) and labels[1] == 4
    marginals = crf.marginals(emissions, [4])
    assert marginals[0, 2] == 0 and marginals.isfinite().all()
    crf.loss(emissions, [4], torch.tensor([1, 2, 0, 0])).backward()
    assert crf.transitions.grad is not None and crf.starts.grad is not None
    assert not crf.transitions.grad[~crf.allowed].any() and not crf.starts.grad[~crf.may_start].any()
    assert crf.transitions.grad.any()


def test_a_label_that_no_path_reaches_leaves_the_gradients_finite() -> None:
    turns = torch.tensor([[False, True], [True, False]])  # 0 1 0 1 …, the only labelling there is
    crf = Crf(2, turns, torch.tensor([True, False]))
    emissions = torch.randn(5, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = crf.loss(emissions, [5], torch.tensor([0, 1, 0, 1, 0]))
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-5)
    assert emissions.grad is not None and emissions.grad.abs().max() < 1e-5
    assert crf.decode(emissions, [5]) == [[0, 1, 0, 1, 0]]
    assert crf.marginals(emissions, [5]).tolist() == [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([0, 2, 0], "label 2 follows label 0"),
        ([1, 4, 0], "label 4 follows label 1"),
        ([0, 0, 4], "starts with label 4"),
    ],
)
def test_targets_that_are_not_allowed_are_refused(targets: list[int], message: str) -> None:
    crf = Crf(5, *bio_transitions(BIO))
    with pytest.raises(HeedfulError, match=message) as caught:
        crf.loss(torch.zeros(3, 5), [2, 1], torch.tensor(targets))
    assert "I-X" in str(caught.value.remedy)


def test_bio() -> None:
    allowed, starts = bio_transitions(BIO)
    may_follow = {BIO[i]: {BIO[j] for j in range(5) if allowed[i, j]} for i in range(5)}
    outside = {"O", "B-PER", "B-LOC"}
    assert may_follow == {
        "O": outside,
        "B-PER": outside | {"I-PER"},
        "I-PER": outside | {"I-PER"},
        "B-LOC": outside | {"I-LOC"},
        "I-LOC": outside | {"I-LOC"},
    }
    assert [BIO[i] for i in range(5) if starts[i]] == ["O", "B-PER", "B-LOC"]
    allowed, starts = bio_transitions(["NOUN", "VERB"])
    assert allowed.all() and starts.all()


def test_prediction_works_where_gradients_are_switched_off() -> None:
    rng = torch.Generator().manual_seed(1)
    crf = random_crf(3, rng).float()
    emissions = torch.randn(6, 3, generator=rng)
    labels, marginals = crf.decode(emissions, [4, 2]), crf.marginals(emissions, [4, 2])
    with torch.inference_mode():
        inside = emissions * 1
        assert crf.decode(inside, [4, 2]) == labels
        assert torch.equal(crf.marginals(inside, [4, 2]), marginals)
    with torch.no_grad():
        assert crf.decode(inside, [4, 2]) == labels
    assert not marginals.requires_grad and all(parameter.grad is None for parameter in crf.parameters())


def test_equal_scores_still_give_one_path() -> None:
    turns = torch.tensor([[False, True], [True, False]])
    crf = Crf(2, turns)
    [labels] = crf.decode(torch.zeros(6, 2), [6])
    assert is_allowed(crf, tuple(labels))


def test_transitions_learn_what_emissions_do_not_say() -> None:
    crf, lengths = Crf(3), [7, 5]
    emissions = torch.zeros(12, 3)
    targets = torch.tensor([2, 0, 1, 2, 0, 1, 2, 2, 0, 1, 2, 0])
    assert crf.decode(emissions, lengths) != [targets[:7].tolist(), targets[7:].tolist()]
    for _ in range(40):
        slopes = torch.autograd.grad(crf.loss(emissions, lengths, targets), list(crf.parameters()))
        with torch.no_grad():
            for parameter, slope in zip(crf.parameters(), slopes, strict=True):
                parameter -= 0.2 * slope
    assert crf.decode(emissions, lengths) == [targets[:7].tolist(), targets[7:].tolist()]


def test_only_the_scores_are_saved() -> None:
    assert set(Crf(5, *bio_transitions(BIO)).state_dict()) == {"starts", "transitions", "ends"}
