"""Short pairs: all of one seed the same, none on both sides, every word met in training."""

from heedful.toy.short_pairs import DEV, TRAIN, short_pairs


def test_train_and_dev_share_words_and_no_sentence() -> None:
    pairs = short_pairs()
    train, dev = pairs["train"], pairs["dev"]
    assert (len(train), len(dev)) == (TRAIN, DEV) and not set(train) & set(dev)
    assert pairs == short_pairs() != short_pairs(1)
    assert {word for row in dev for word in row.en.split()} <= {word for row in train for word in row.en.split()}
    assert {char for row in dev for char in row.zh} <= {char for row in train for char in row.zh}
