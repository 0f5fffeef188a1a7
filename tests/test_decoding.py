"""The search, against going through everything there is to say with a tiny vocabulary."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from heedful import decoding
from heedful.decoding import Beam, Hypothesis, Sampling, _draw, _staying, beam_search, greedy, sample
from heedful.errors import HeedfulError
from heedful.nn.top_blocks import BLOCK, best_of_all

START, END, BANNED = 0, 1, 2
VOCABULARY = 6
LONGEST = (3, 4, 2)
PENALTIES = (0.0, 0.6, 1.0, 2.0)


@cache
def logits_after(seed: int, sentence: int, said: tuple[int, ...]) -> tuple[float, ...]:
    """Any logits, but always the same after the same words."""
    return tuple(np.random.default_rng([seed, sentence, *said]).normal(0, 2, VOCABULARY).astype(np.float32).tolist())


@dataclass(frozen=True)
class Told:
    """A state that remembers everything: the sentences, and what their hypotheses were given."""

    sentences: Tensor  # (B,)
    given: Tensor  # (B, K, t)

    def reorder(self, parents: Tensor) -> Told:
        return Told(self.sentences, self.given.gather(1, parents[..., None].expand(-1, -1, self.given.shape[-1])))

    def keep(self, sentences: Tensor) -> Told:
        return Told(self.sentences[sentences], self.given[sentences])


def begin(count: int) -> Told:
    return Told(torch.arange(count), torch.empty(count, 1, 0, dtype=torch.long))


def table(seed: int, sizes: list[int] | None = None) -> Callable[[Tensor, Told], tuple[Tensor, Told]]:
    """A step function; `sizes` is told of every batch."""

    def step(tokens: Tensor, state: Told) -> tuple[Tensor, Told]:
        if sizes is not None:
            sizes.append(len(tokens))
        given = torch.cat([state.given, tokens[..., None]], -1)
        rows = zip(state.sentences.tolist(), given.tolist(), strict=True)
        logits = [[logits_after(seed, sentence, tuple(words)) for words in beams] for sentence, beams in rows]
        return torch.tensor(logits), Told(state.sentences, given)

    return step


def log_softmax(logits: Sequence[float]) -> list[float]:
    return torch.tensor(logits).log_softmax(-1).tolist()  # type: ignore[no-any-return]


def everything(seed: int, sentence: int, longest: int, penalty: float, banned: Sequence[int]) -> list[Hypothesis]:
    """All hypotheses there are, the best first."""

    def closed(said: tuple[int, ...], total: float) -> Iterator[Hypothesis]:
        for symbol, value in enumerate(log_softmax(logits_after(seed, sentence, (START, *said)))):
            if symbol in banned:
                continue
            length = len(said) + 1
            if symbol == END:
                yield Hypothesis(said, (total + value) / length**penalty, total + value, True)
            elif length == longest:
                yield Hypothesis((*said, symbol), (total + value) / length**penalty, total + value, False)
            else:
                yield from closed((*said, symbol), total + value)

    return sorted(closed((), 0.0), key=lambda one: (not one.finished, -one.score))


def same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    assert [one.ids for one in found] == [one.ids for one in expected]
    assert [one.finished for one in found] == [one.finished for one in expected]
    for name in ("score", "log_probability"):
        assert [getattr(a, name) for a in found] == pytest.approx([getattr(b, name) for b in expected], abs=1e-4)


def search(seed: int, how: Beam, longest: Sequence[int] = LONGEST) -> list[list[Hypothesis]]:
    return beam_search(table(seed), begin(len(longest)), longest, START, END, how, [START, BANNED])


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_what_going_through_everything_finds(seed: int, penalty: float) -> None:
    for n_best in (1, 7, 400):
        found = search(seed, Beam(400, penalty, n_best))
        for sentence, longest in enumerate(LONGEST):
            same(found[sentence], everything(seed, sentence, longest, penalty, [START, BANNED])[:n_best])


@pytest.mark.parametrize("size", [3, BLOCK, 7 * BLOCK, 10 * BLOCK + 5, 100 * BLOCK + BLOCK - 1])
def test_the_best_symbols_are_those_of_topk(size: int) -> None:
    rng = torch.Generator().manual_seed(size)
    for count in (1, 3, 12):
        values = torch.randint(30, (2, 5, size), generator=rng).float()  # many are equal
        sums = torch.randint(30, (2, 5), generator=rng).float()
        sums[1, 2:] = -math.inf  # these wait
        values[:, :, 0] = -math.inf
        found, parents, symbols = best_of_all(values, sums, min(count, 5 * size))
        everything = values + sums[..., None]
        assert torch.equal(found, everything.flatten(1).topk(min(count, 5 * size)).values)
        places = parents * size + symbols
        assert torch.equal(everything.flatten(1).gather(1, places), found)
        assert all(len(set(row)) == len(row) for row in places.tolist())


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_beam_of_one_is_greedy(penalty: float) -> None:
    for seed in range(20):
        longest = (5, 1, 3, 8, 2)
        narrow = search(seed, Beam(1, penalty), longest)
        likeliest = greedy(table(seed), begin(5), longest, START, END, [START, BANNED], length_penalty=penalty)
        same([one for (one,) in narrow], likeliest)


def test_greedy_takes_the_likeliest_symbol_each_time() -> None:
    found = greedy(table(0), begin(3), (6, 6, 6), START, END, [BANNED])
    for sentence, hypothesis in enumerate(found):
        said, total = [START], 0.0
        symbols = [*hypothesis.ids, END] if hypothesis.finished else list(hypothesis.ids)
        for symbol in symbols:
            logits = logits_after(0, sentence, tuple(said))
            assert symbol == max((i for i in range(VOCABULARY) if i != BANNED), key=lambda i: logits[i])
            total += log_softmax(logits)[symbol]
            said.append(symbol)
        assert hypothesis.log_probability == pytest.approx(total, abs=1e-5)
        assert hypothesis.score == pytest.approx(total / len(symbols), abs=1e-5)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_best_of_a_beam_are_sorted_different_and_what_they_say_they_are(size: int, penalty: float) -> None:
    longest = (7, 1, 4, 9, 5, 2, 6, 3, 8, 7)
    for seed in range(5):
        for sentence, found in enumerate(search(seed, Beam(size, penalty, size), longest)):
            assert 1 <= len(found) <= size
            assert len({one.ids for one in found}) == len(found)
            assert found == sorted(found, key=lambda one: (not one.finished, -one.score))
            for one in found:
                assert len(one.ids) + one.finished <= longest[sentence]
                assert one.finished or len(one.ids) == longest[sentence]
                assert not {START, END, BANNED} & set(one.ids)
                symbols = [*one.ids, END] if one.finished else one.ids
                given = [(START, *one.ids[:n]) for n in range(len(symbols))]
                steps = [log_softmax(logits_after(seed, sentence, g))[s] for g, s in zip(given, symbols, strict=True)]
                assert one.log_probability == pytest.approx(sum(steps), abs=1e-4)
                assert one.score == pytest.approx(sum(steps) / len(symbols) ** penalty, abs=1e-4)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_stopping_early_changes_nothing(penalty: float) -> None:
    """Asked for all of its hypotheses, a beam stops when it has as many; asked for the best one, perhaps earlier."""
    longest = (9,) * 12
    for seed in range(6):
        one, all_of_them = (search(seed, Beam(4, penalty, n), longest) for n in (1, 4))
        assert [found[0].ids for found in one] == [found[0].ids for found in all_of_them]


def test_finished_sentences_leave_the_batch() -> None:
    """Sentence n may say n symbols and wants to go on for ever."""

    def step(tokens: Tensor, state: Told) -> tuple[Tensor, Told]:
        sizes.append(len(tokens))
        logits = torch.zeros(*tokens.shape, 4)
        logits[..., END] = -50.0
        return logits, state

    longest = range(1, 17)
    for run in (
        lambda: beam_search(step, begin(16), longest, START, END, Beam(2)),
        lambda: greedy(step, begin(16), longest, START, END),
        lambda: sample(step, begin(16), longest, START, END, Sampling(count=3), torch.Generator()),
    ):
        sizes: list[int] = []
        run()
        assert len(sizes) == 16 and sizes == sorted(sizes, reverse=True)
        waiting = [batch - (16 - number) for number, batch in enumerate(sizes)]
        assert sizes[-1] == 1 and all(0 <= idle <= batch / 8 for idle, batch in zip(waiting, sizes, strict=True))


def test_a_sentence_does_not_depend_on_its_batch() -> None:
    longest = (7, 2, 4, 9, 5)
    together = search(3, Beam(3, 1.0, 3), longest)
    for number in range(5):
        state = Told(torch.tensor([number]), torch.empty(1, 1, 0, dtype=torch.long))
        (alone,) = beam_search(table(3), state, [longest[number]], START, END, Beam(3, 1.0, 3), [START, BANNED])
        same(together[number], alone)


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_logits_may_be_asked_for_a_part_at_a_time(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step gives half of each logit, and `logits` doubles them."""
    longest, sizes = (7, 2, 4, 9, 5, 6, 1), list[int]()

    def step(tokens: Tensor, state: Told) -> tuple[Tensor, Told]:
        logits, after = table(3)(tokens, state)
        return logits / 2, after

    def logits(states: Tensor) -> Tensor:
        sizes.append(states.shape[0] * states.shape[1])
        return 2 * states

    expected = search(3, Beam(3, 1.0, 3), longest)
    monkeypatch.setattr(decoding, "AT_ONCE", at_once)
    found = beam_search(step, begin(7), longest, START, END, Beam(3, 1.0, 3), [START, BANNED], logits=logits)
    assert found == expected
    assert max(sizes) <= max(3, at_once)


def test_batches_get_smaller_by_few_sizes_and_most_rows_stay_in_place() -> None:
    assert _staying([1, 2, 4], 6) == [4, 1, 2]
    assert _staying(range(5), 6) == [0, 1, 2, 3, 4]
    sizes = {len(_staying(range(100, 100 + count), 1000)) for count in range(1, 801)}
    assert len(sizes) <= 32 + 16 * 5
    rng = random.Random(0)
    for rows in (1, 40, 300):
        going = sorted(rng.sample(range(rows), rng.randint(1, rows)))
        staying = _staying(going, rows)
        assert len(set(staying)) == len(staying) <= len(going) * 17 / 16 and set(going) <= set(staying)
        assert all(row == place or row >= len(staying) for place, row in enumerate(staying))


def test_nothing_to_decode() -> None:
    assert beam_search(table(0), begin(0), [], START, END, Beam(2)) == []
    assert greedy(table(0), begin(0), [], START, END) == []
    assert sample(table(0), begin(0), [], START, END, Sampling(), torch.Generator()) == []


def allowed(logits: Sequence[float], how: Sampling, banned: Sequence[int]) -> dict[int, float]:
    """The symbols that may be drawn with their probabilities, written out."""
    weights = {i: math.exp(value / how.temperature) for i, value in enumerate(logits) if i not in banned}
    ranked = sorted(weights, key=lambda i: -weights[i])[: how.top_k or len(weights)]
    total, kept, mass = sum(weights[i] for i in ranked), list[int](), 0.0
    for symbol in ranked:
        if mass >= how.top_p:
            break
        kept.append(symbol)
        mass += weights[symbol] / total
    return {symbol: weights[symbol] / sum(weights[i] for i in kept) for symbol in kept}


Shares = dict[tuple[int, ...], float]


def distribution(seed: int, sentence: int, longest: int, how: Sampling, banned: Sequence[int]) -> Shares:
    """How probable each hypothesis is to be drawn, the end symbol shown where there is one."""
    found: Shares = {}
    underway: Shares = {(): 1.0}
    for length in range(1, longest + 1):
        following: Shares = {}
        for said, probability in underway.items():
            for symbol, share in allowed(logits_after(seed, sentence, (START, *said)), how, banned).items():
                done = symbol == END or length == longest
                (found if done else following)[(*said, symbol)] = probability * share
        underway = following
    return found


@pytest.mark.parametrize(
    "how",
    [
        Sampling(count=3000),
        Sampling(temperature=0.5, count=3000),
        Sampling(temperature=3.0, count=3000),
        Sampling(top_k=1, count=50),
        Sampling(top_k=2, count=3000),
        Sampling(top_k=50, temperature=2.0, count=3000),
        Sampling(top_p=0.6, count=3000),
        Sampling(top_p=0.9, temperature=1.5, count=3000),
        Sampling(top_p=0.7, top_k=3, temperature=2.0, count=3000),
        Sampling(top_p=1e-9, count=50),
    ],
)
def test_samples_are_distributed_as_they_should_be(how: Sampling) -> None:
    longest, rng = (2, 3), torch.Generator().manual_seed(0)
    found = sample(table(5), begin(2), longest, START, END, how, rng, [BANNED])
    for sentence, most in enumerate(longest):
        expected = distribution(5, sentence, most, how, [BANNED])
        assert sum(expected.values()) == pytest.approx(1)
        counts = Counter((*one.ids, END) if one.finished else one.ids for one in found[sentence])
        assert counts.total() == how.count and counts.keys() <= expected.keys()
        if len(expected) > 1:
            assert _p_value(counts, expected, how.count) > 1e-3


def _p_value(counts: Counter[tuple[int, ...]], expected: Shares, total: int) -> float:
    """Of a χ² test; what is expected less than five times is taken together."""
    common = [said for said, probability in expected.items() if probability * total >= 5]
    observed = [counts[said] for said in common]
    wanted = [expected[said] * total for said in common]
    if len(common) < len(expected):
        observed.append(total - sum(observed))
        wanted.append(total - sum(wanted))
    return float(stats.chisquare(observed, wanted).pvalue)


@pytest.mark.parametrize("how", [Sampling(temperature=5e-324), Sampling(top_p=5e-324)])
def test_the_least_there_can_be_leaves_the_likeliest(how: Sampling) -> None:
    logits = torch.tensor([[[-900.0, 3.0, 1.0, -torch.inf]]])
    assert _draw(logits, how, torch.Generator()).tolist() == [[1]]


def test_samples_say_how_probable_they_are_for_the_model() -> None:
    how = Sampling(temperature=0.3, top_k=3, count=20)
    for sentence, found in enumerate(sample(table(7), begin(3), LONGEST, START, END, how, torch.Generator(), [2])):
        exhaustive = {one.ids: one for one in everything(7, sentence, LONGEST[sentence], 1.0, [])}
        same(found, [exhaustive[one.ids] for one in found])


def test_samples_are_repeated_by_the_seed() -> None:
    def drawn(seed: int) -> list[list[Hypothesis]]:
        rng = torch.Generator().manual_seed(seed)
        return sample(table(0), begin(3), (9, 9, 9), START, END, Sampling(count=8), rng)

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Beam(0), "beam of 0"),
        (lambda: Beam(3, n_best=4), "the 4 best of a beam of 3"),
        (lambda: Beam(3, n_best=0), "the 0 best of a beam of 3"),
        (lambda: Beam(3, -0.1), "penalty of -0.1"),
        (lambda: Beam(3, math.nan), "penalty of nan"),
        (lambda: Beam(3, math.inf), "penalty of inf"),
        (lambda: Sampling(temperature=0.0), "temperature of 0"),
        (lambda: Sampling(temperature=math.nan), "temperature of nan"),
        (lambda: Sampling(top_k=-1), "the top -1"),
        (lambda: Sampling(top_p=0.0), "top_p of 0"),
        (lambda: Sampling(top_p=1.1), "top_p of 1.1"),
        (lambda: Sampling(count=0), "0 samples"),
        (lambda: search(0, Beam(2), (3, 0)), "at most 0 symbols"),
        (lambda: beam_search(table(0), begin(1), [3], START, END, Beam(2), [END]), "the end symbol is banned"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(HeedfulError, match=said):
        make()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_broken_model_is_told(value: float) -> None:
    def step(tokens: Tensor, state: Told) -> tuple[Tensor, Told]:
        return torch.full((*tokens.shape, 4), value), state

    for run in (
        lambda: beam_search(step, begin(1), [3], START, END, Beam(2)),
        lambda: greedy(step, begin(1), [3], START, END),
        lambda: sample(step, begin(1), [3], START, END, Sampling(), torch.Generator()),
    ):
        with pytest.raises(HeedfulError, match="no numbers"):
            run()
