"""Work on a Ray cluster: addresses that are none, files that its workers read and write, and a node that is lost."""

from __future__ import annotations

import gzip
import importlib.util
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful.data import ray_engine as module
from heedful.data.corpus import pieces
from heedful.data.corpus.build import BuildProgress, ReadingSettings, build_corpus
from heedful.data.ray_engine import ray_engine
from heedful.errors import HeedfulError
from heedful.inference import vector_file, vector_parts
from heedful.inference.embed_file import EmbedProgress, embed_file
from heedful.inference.embedder import TEXTS_PER_CHUNK, Embedder
from heedful.runs.preparation.settings import CorpusSettings
from heedful.text.tokenizer import Tokenizer

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra ray")
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}


def refused(address: str) -> str:
    with pytest.raises(HeedfulError) as raised, ray_engine(address):
        pass
    assert raised.value.remedy
    return raised.value.what


@pytest.mark.parametrize("address", ["nonsense", "host:port", ":6379", "ray://", ""])
def test_what_is_no_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    assert refused(address) == "not the address of a Ray cluster"


def test_nobody_and_somebody_else_at_the_address_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert "no Ray cluster answers (timed out)" in refused(address)
    assert "no Ray cluster answers" in refused(address)
    assert "no Ray cluster answers" in refused("127.0.0.1:99999")


def test_without_the_package_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert "ray is not installed" in refused("127.0.0.1:6379")


def test_workers_and_a_cluster_are_not_both_taken() -> None:
    with pytest.raises(HeedfulError, match="`workers` has no effect with `ray`"):
        CorpusSettings("text.txt", "corpus", tokenizer="tokenizer", workers=2, ray="host:1")


class InTurn:
    """An engine of two workers in this process."""

    def mapped(
        self, make_tool: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...], tasks: Iterable[Any]
    ) -> Iterator[Any]:
        tools = [make_tool(*arguments) for _ in range(2)]
        return (tools[number % 2](task) for number, task in enumerate(tasks))


class Stop(Exception):
    """The interruption."""


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize(
    ("kind", "unit"), [("npy", "sentence"), ("npy", "word"), ("safetensors", "sentence"), ("jsonl", "token")]
)
def test_vectors_that_an_engines_workers_write_are_those_of_this_process(
    tiny: Embedder,
    sentences: Callable[[int], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    unit: str,
    scheme: str,
) -> None:
    """Interrupted when two chunks are written and one is committed, and gone on with."""
    monkeypatch.setattr(vector_file, "COMMIT_EVERY", -1.0)
    monkeypatch.setattr(vector_parts, "PART_SECONDS", -1.0)
    wanted = tiny.features([-1], "concat", None, unit, False)
    size = TEXTS_PER_CHUNK[unit]
    texts = sentences(3 * size + 5)
    name = f"x.{kind}"
    embed_file(tiny, texts, tmp_path / "own" / name, wanted, kind=kind)

    def stop(progress: EmbedProgress) -> None:
        if progress.texts >= 2 * size:
            raise Stop

    where = f"{scheme}{tmp_path}/engine/{name}"
    with pytest.raises(Stop):
        embed_file(tiny, texts, where, wanted, kind=kind, engine=InTurn(), on_progress=stop)
    done = embed_file(tiny, texts, where, wanted, kind=kind, engine=InTurn())
    assert done.resumed == size
    files = [{file.name: file.read_bytes() for file in (tmp_path / one).iterdir()} for one in ("own", "engine")]
    assert files[0] == files[1]


@pytest.mark.parametrize("left", [None, b"of another run"])
def test_a_worker_that_does_not_share_the_folder_writes_nothing(
    tiny: Embedder, tmp_path: Path, left: bytes | None
) -> None:
    """Neither where there is no such file, nor into one that is another's."""
    partial, wanted = tmp_path / "x.npy.partial", tiny.features([-1], "concat", None, "sentence", False)

    class Elsewhere(InTurn):
        def mapped(self, *given: Any) -> Iterator[Any]:
            partial.unlink()
            if left is not None:
                partial.write_bytes(left)
            return super().mapped(*given)

    with pytest.raises(HeedfulError, match="not found here") as raised:
        embed_file(tiny, ["cat"], tmp_path / "x.npy", wanted, engine=Elsewhere())
    assert "all machines share" in str(raised.value.remedy) and not list(tmp_path.iterdir())


def test_what_only_one_process_has_is_refused(tiny: Embedder) -> None:
    wanted = tiny.features([-1], "concat", None, "sentence", False)
    with pytest.raises(HeedfulError, match="the others do not see"):
        embed_file(tiny, ["cat"], "memory://x.npy", wanted, engine=InTurn())


def test_a_text_that_is_too_long_is_refused_whoever_reads_it(tiny: Embedder, tmp_path: Path) -> None:
    wanted = tiny.features([-1], "concat", None, "sentence", False)
    with pytest.raises(HeedfulError, match="text 2 is longer") as raised:
        embed_file(
            *(tiny, ["cat", "dog " * 30], tmp_path / "x.npy", wanted),
            max_length=8,
            truncate="error",
            engine=InTurn(),
        )
    assert "dog dog" in str(raised.value.where)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of one node."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    yield cluster
    cluster.shutdown()


@pytest.fixture
def two_nodes(cluster: Any) -> tuple[Any, Callable[[], None]]:
    """The cluster with a second node, and what kills that one."""
    second: Any = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    return cluster, lambda: cluster.remove_node(second, allow_graceful=False)


@needs_ray
@pytest.mark.parametrize("when", ["after the first shard", "before the last shard"])
def test_a_corpus_read_and_made_on_two_nodes_is_the_same_though_one_is_lost(
    tiny_tokenizer: Tokenizer,
    sentences: Callable[[int], list[str]],
    tmp_path: Path,
    two_nodes: tuple[Any, Callable[[], None]],
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    cluster, lose_one = two_nodes
    monkeypatch.setattr(pieces, "STRETCH_BYTES", 8_000)
    text, packed = tmp_path / "text.txt", tmp_path / "text.txt.gz"
    text.write_text("\n\n".join(filter(None, sentences(3000))), encoding="utf-8")
    packed.write_bytes(gzip.compress(text.read_bytes()))
    files = [f"file://{text}", str(packed)]
    reading = ReadingSettings(unit_bytes=10_000)
    local = build_corpus(files, tmp_path / "local", tiny_tokenizer, reading=reading)
    moment = 1 if when == "after the first shard" else sum(map(len, local.manifest["shards"].values())) - 1
    staged: set[Path] = set()
    lost: list[int] = []

    def lose(progress: BuildProgress) -> None:
        staged.update((tmp_path / "ray").glob("staged-*"))
        if progress.shards == moment:
            lose_one()
            lost.append(progress.shards)

    with ray_engine(cluster.address) as engine:
        folder = f"file://{tmp_path}/ray"
        build_corpus(files, folder, tiny_tokenizer, reading=reading, workers=engine, on_progress=lose)
        with pytest.raises(HeedfulError) as raised:
            list(engine.mapped(Tokenizer.load, (tmp_path / "nowhere",), range(1)))
        assert socket.gethostname() in str(raised.value.where)
    assert lost == [moment] and len(staged) > 3
    names = sorted(path.name for path in (tmp_path / "local").glob("*.*"))
    assert names == sorted(path.name for path in (tmp_path / "ray").glob("*.*")) and len(names) > 6
    assert all((tmp_path / "local" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes() for name in names)


@needs_ray
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_vectors_written_by_two_nodes_are_the_same_though_one_is_lost(
    tiny: Embedder,
    sentences: Callable[[int], list[str]],
    tmp_path: Path,
    two_nodes: tuple[Any, Callable[[], None]],
    scheme: str,
) -> None:
    cluster, lose_one = two_nodes
    wanted = tiny.features([-1], "concat", None, "sentence", False)
    texts = sentences(8 * TEXTS_PER_CHUNK["sentence"] + 5)
    lost: list[int] = []

    def lose(progress: EmbedProgress) -> None:
        if not lost:
            lose_one()
            lost.append(progress.texts)

    embed_file(tiny, texts, tmp_path / "own" / "x.npy", wanted)
    with ray_engine(cluster.address) as engine:
        embed_file(tiny, texts, f"{scheme}{tmp_path}/ray/x.npy", wanted, engine=engine, on_progress=lose)
    files = [{file.name: file.read_bytes() for file in (tmp_path / one).iterdir()} for one in ("own", "ray")]
    assert files[0] == files[1] and lost
