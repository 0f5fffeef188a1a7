"""The incremental learner against the textbook loop that counts everything anew at every step."""

from collections import Counter
from itertools import pairwise
from operator import add

from hypothesis import given
from hypothesis import strategies as st

from heedful.text.merges import learn_merges

LETTERS = "abc"
WORDS = st.dictionaries(st.text(LETTERS, min_size=1, max_size=9), st.integers(1, 5), min_size=1, max_size=12)


def counted_anew(words, alphabet, size, least_count):
    pieces, merges = list(alphabet), []
    spellings = [([alphabet.index(letter) for letter in word], count) for word, count in words.items()]
    while len(pieces) < size:
        counts = Counter()
        for spelling, count in spellings:
            for pair in pairwise(spelling):
                counts[pair] += count
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < least_count:
            break
        joined = pieces[best[0]] + pieces[best[1]]
        if joined not in pieces:
            pieces.append(joined)
        merges.append((pieces[best[0]], pieces[best[1]]))
        spellings = [(replaced(spelling, best, pieces.index(joined)), count) for spelling, count in spellings]
    return pieces, merges


def replaced(spelling, pair, joined):
    result, position = [], 0
    while position < len(spelling):
        here = tuple(spelling[position : position + 2]) == pair
        result.append(joined if here else spelling[position])
        position += 2 if here else 1
    return result


@given(WORDS, st.integers(3, 30), st.integers(1, 3))
def test_equals_counting_anew_at_every_step(words, size, least_count):
    spelled = [([LETTERS.index(letter) for letter in word], count) for word, count in words.items()]
    learnt = learn_merges(spelled, LETTERS, size, glue=add, least_count=least_count)
    assert learnt == counted_anew(words, LETTERS, size, least_count)


@given(WORDS, st.randoms(use_true_random=False))
def test_the_order_of_the_words_does_not_matter(words, rng):
    spelled = [([LETTERS.index(letter) for letter in word], count) for word, count in words.items()]
    shuffled = rng.sample(spelled, len(spelled))
    assert learn_merges(spelled, LETTERS, 20, glue=add) == learn_merges(shuffled, LETTERS, 20, glue=add)
