"""Building: the same bytes whatever happens on the way, and clear words when it cannot be done."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import ExampleMaker, Recipe
from heedful.data.corpus.tokens import TokenSettings
from heedful.data.shards import open_shard
from heedful.errors import HeedfulError
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer

READING = ReadingSettings(held_out_share=0.1, unit_bytes=40_000)
# Killed while it works, it must not have finished: one worker is slowed down by a nap after each shard.
SCRIPT = """
import sys, time
from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.text.tokenizer import Tokenizer

def nap(progress):
    print(progress.shards, flush=True)
    time.sleep(0.02)

if __name__ == "__main__":
    text, folder, tokenizer, workers = sys.argv[1:]
    reading = ReadingSettings(held_out_share=0.1, unit_bytes=40_000)
    build_corpus([text], folder, Tokenizer.load(tokenizer), reading=reading, workers=int(workers), on_progress=nap)
"""


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def built(text_file, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "corpus"
    build_corpus([str(text_file)], folder, tokenizer, reading=READING)
    return folder


def copied(built, tmp_path):
    import shutil

    return Path(shutil.copytree(built, tmp_path / "copy"))


def test_everything_is_there_once(built, text_file, tokenizer):
    corpus = Corpus.open(built, verify=True)
    assert len(corpus.train.shards) > 3 and corpus.held_out.documents > 20
    text = text_file.read_text(encoding="utf-8")
    assert corpus.train.documents + corpus.held_out.documents == text.count("\n\n") + 1
    assert corpus.train.tokens + corpus.held_out.tokens == len(tokenizer.library.encode(text, add_special_tokens=False))
    first = text.split("\n\n")[0]
    ids = tokenizer.library.encode(first, add_special_tokens=False).ids
    assert corpus.train.read("tokens", 0, int(corpus.train.document_starts[1])).tolist() == ids


@pytest.mark.parametrize(("workers", "scheme"), [(2, ""), (3, "file://")])
def test_same_bytes_for_any_number_of_workers(built, text_file, tokenizer, tmp_path, workers, scheme):
    build_corpus([f"{scheme}{text_file}"], f"{scheme}{tmp_path}/c", tokenizer, reading=READING, workers=workers)
    assert content(tmp_path / "c") == content(built)


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_and_started_again(built, text_file, tokenizer, tmp_path, workers):
    script, folder = tmp_path / "script.py", tmp_path / "c"
    script.write_text(SCRIPT)
    tokenizer.save(tmp_path / "t")
    command = [sys.executable, str(script), str(text_file), str(folder), str(tmp_path / "t"), str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() and process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with pytest.raises(HeedfulError, match="not finished"):
        Corpus.open(folder)
    done = {path: path.stat().st_mtime_ns for path in folder.glob("*.safetensors")}
    assert len(done) >= 2
    (folder / ".train-00002.safetensors.12ab.tmp").write_bytes(b"half")
    build_corpus([str(text_file)], folder, tokenizer, reading=READING, workers=workers)
    assert content(folder) == content(built)
    assert all(path.stat().st_mtime_ns == before for path, before in done.items())


def test_workers_end_with_their_parent(text_file, tokenizer, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    tokenizer.save(tmp_path / "t")
    command = [sys.executable, str(script), str(text_file), str(tmp_path / "c"), str(tmp_path / "t"), "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        pytest.skip("needs Linux: /proc tells the children of a process")
    numbers = [int(number) for number in children.read_text().split()]
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 20
    while any(_alive(number) for number in numbers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert numbers and not any(_alive(number) for number in numbers)


def _alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_damaged_shard_is_built_again(built, text_file, tokenizer, tmp_path):
    folder = copied(built, tmp_path)
    shard = folder / "train-00001.safetensors"
    raw = bytearray(shard.read_bytes())
    raw[-5] ^= 1
    shard.write_bytes(raw)
    (folder / "train-00002.safetensors").unlink()
    kept = []
    build_corpus([str(text_file)], folder, tokenizer, reading=READING, on_progress=lambda p: kept.append(p.kept))
    assert content(folder) == content(built) and kept[-1] == len(kept) - 2


def test_damage_is_detected_before_use(built, tmp_path):
    """Twenty damages: bits flipped anywhere, files cut, lengthened or lost; each is found and named."""
    folder = copied(built, tmp_path)
    rng = random.Random(0)
    shards = sorted(folder.glob("*.safetensors"))
    for turn in range(20):
        shard = rng.choice(shards)
        raw = shard.read_bytes()
        place = rng.randrange(len(raw))
        flipped = raw[:place] + bytes([raw[place] ^ 1 << rng.randrange(8)]) + raw[place + 1 :]
        damaged = [flipped, raw[:place], raw + b"\0", b""][min(turn % 8, 3)] if turn % 8 < 4 else flipped
        shard.write_bytes(damaged)
        with pytest.raises(HeedfulError, match="damaged") as caught:
            Corpus.open(folder, verify=True)
        assert caught.value.where == shard
        if len(damaged) != len(raw):
            with pytest.raises(HeedfulError, match="damaged"):
                Corpus.open(folder)
        shard.write_bytes(raw)
    shards[0].unlink()
    with pytest.raises(HeedfulError, match="missing"):
        Corpus.open(folder)


def test_damaged_headers_never_crash(built, tmp_path):
    raw = (built / "train-00000.safetensors").read_bytes()
    rng = random.Random(1)
    path = tmp_path / "s.safetensors"
    for _ in range(200):
        place = rng.randrange(300)
        path.write_bytes(raw[:place] + bytes([rng.randrange(256)]) + raw[place + 1 :])
        try:
            shard = open_shard(path)
        except HeedfulError:
            continue
        assert not shard.is_whole() or path.read_bytes() == raw


def test_another_shard_of_the_same_size_is_noticed(built, text_file, tokenizer, tmp_path):
    folder = copied(built, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["shards"]["train"][0]["tokens"] += 1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(HeedfulError, match="manifest is damaged"):
        Corpus.open(folder)


def test_changed_input_rebuilds_what_changed(built, text_file, tokenizer, tmp_path):
    folder = copied(built, tmp_path)
    shorter = tmp_path / "shorter.txt"
    shorter.write_text("\n\n".join(text_file.read_text(encoding="utf-8").split("\n\n")[:300]), encoding="utf-8")
    for workers in (1, 2):
        with pytest.raises(HeedfulError, match=r"finished corpus of another text(.|\n)*`overwrite`"):
            build_corpus([str(shorter)], folder, tokenizer, reading=READING, workers=workers)
    assert content(folder) == content(built)
    kept = []
    again = {"reading": READING, "overwrite": True}
    build_corpus([str(shorter)], folder, tokenizer, on_progress=lambda p: kept.append(p.kept), **again)
    assert 0 < kept[-1] < len(kept)
    build_corpus([str(shorter)], tmp_path / "fresh", tokenizer, reading=READING)
    assert content(folder) == content(tmp_path / "fresh")


def test_packed_input_gives_the_same_shards(built, text_file, tokenizer, tmp_path):
    with gzip.open(tmp_path / "text.txt.gz", "wb") as file:
        file.write(text_file.read_bytes())
    build_corpus([str(tmp_path / "text.txt.gz")], tmp_path / "c", tokenizer, reading=READING)
    assert content(tmp_path / "c") == content(built)


def test_held_out_files(text_file, tokenizer, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("Ba da.\n\nFa ga. Ka.", encoding="utf-8")
    reading = ReadingSettings(held_out_share=0, held_out_files=(str(other),))
    corpus = build_corpus([str(text_file)], tmp_path / "c", tokenizer, reading=reading)
    assert corpus.held_out.documents == 2 and corpus.held_out.tokens == 8


def lacking(special):
    vocabulary = {piece: i for i, piece in enumerate([*SPECIAL_TOKENS.values(), "a"]) if piece != special}
    return Tokenizer(wordpiece_tokenizer(vocabulary, lowercase=True))


def test_only_what_hides_tokens_needs_a_mask(text_file, tmp_path):
    corpus = build_corpus((str(text_file),), tmp_path / "c", lacking("[MASK]"))
    assert corpus.train.tokens
    with pytest.raises(HeedfulError, match=r"no \[MASK\], which masked language modelling needs"):
        ExampleMaker(corpus, Recipe())


def test_refusals(built, text_file, tokenizer, tmp_path):
    def build(files=(str(text_file),), folder=tmp_path / "c", tokenizer=tokenizer, **options):
        return build_corpus(files, folder, tokenizer, **options)

    with pytest.raises(HeedfulError, match="no such file"):
        build(files=[str(text_file), "nowhere.txt"])
    assert not (tmp_path / "c").exists()
    with pytest.raises(HeedfulError, match=r"no \[UNK\], which a corpus needs"):
        build(tokenizer=lacking("[UNK]"))
    with pytest.raises(HeedfulError, match="other settings"):
        build(folder=copied(built, tmp_path), settings=TokenSettings(drop_headings=True))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").write_text("x")
    with pytest.raises(HeedfulError, match=r"thesis\.doc"):
        build(folder=tmp_path / "mine")
    (tmp_path / "few.txt").write_text("\u200b\n")
    with pytest.raises(HeedfulError, match="no text is left"):
        build(files=[str(tmp_path / "few.txt")], folder=tmp_path / "few")
    with pytest.raises(HeedfulError, match="no corpus here"):
        Corpus.open(tmp_path / "nothing")


def test_errors_of_workers_arrive(tokenizer, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"good\n\n" * 10 + b"b\xffd\n")
    for workers in (1, 2):
        with pytest.raises(HeedfulError, match=r"bad\.txt:21"):
            build_corpus([str(tmp_path / "bad.txt")], tmp_path / f"c{workers}", tokenizer, workers=workers)


def test_vocabulary_of_another_tokenizer(built, tokenizer):
    corpus = Corpus.open(built)
    corpus.check_vocabulary(tokenizer)
    vocabulary = {piece: i for i, piece in enumerate([*tokenizer.vocabulary, "more"])}
    with pytest.raises(HeedfulError, match=r"(?s)another vocabulary.*`heedful tokenizer extend`"):
        corpus.check_vocabulary(Tokenizer(wordpiece_tokenizer(vocabulary, lowercase=True)))


def test_shards_are_read_by_safetensors(built):
    from safetensors.numpy import load_file

    path = built / "train-00000.safetensors"
    arrays = load_file(path)
    assert all(np.array_equal(array, open_shard(path).arrays[name]) for name, array in arrays.items())
    assert arrays["tokens"].dtype == np.uint16
