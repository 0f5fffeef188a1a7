"""Short sentences about animals in English and Chinese: few words, so that a small model learns them in a minute."""

from __future__ import annotations

from itertools import product
from random import Random

from heedful.toy.parallel import Parallel
from heedful.toy.patterns import fill_pattern
from heedful.toy.world import ANIMALS, COLOURS, TOWNS, Word

PATTERNS = (
    Word("The {colour} {animal} is in {town}.", "{colour}色的{animal}在{town}。"),
    Word("The {animal} in {town} is {colour}.", "{town}的{animal}是{colour}色的。"),
    Word("Is the {animal} from {town} {colour}?", "{town}来的{animal}是{colour}色的吗？"),
    Word("There is a {colour} {animal} in {town}.", "{town}有一{measure}{colour}色的{animal}。"),
)
NAME, TRAIN, DEV = "short.en-zh", 1000, 200


def short_pairs(seed: int = 0) -> dict[str, list[Parallel]]:
    """The sentences to train on and those to test on, none in both; the same seed gives the same ones."""
    everything = []
    for pattern, animal, colour, town in product(PATTERNS, ANIMALS, COLOURS, TOWNS):
        slots = {"animal": animal.kind, "measure": Word("", animal.measure), "colour": colour, "town": town}
        everything.append(Parallel(fill_pattern(pattern, "en", **slots), fill_pattern(pattern, "zh", **slots)))
    Random(f"{seed} {NAME}").shuffle(everything)
    return {"train": everything[:TRAIN], "dev": everything[TRAIN : TRAIN + DEV]}
