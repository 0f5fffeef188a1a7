"""Work on a Ray cluster: addresses that are none, and a node that is lost before the last shard."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful.data import ray_engine as module
from heedful.data.corpus.build import BuildProgress, ReadingSettings, build_corpus
from heedful.data.ray_engine import ray_engine
from heedful.errors import HeedfulError
from heedful.inference.embed_file import embed_file
from heedful.inference.embedder import Embedder
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


@pytest.mark.parametrize(("kind", "unit"), [("npy", "sentence"), ("safetensors", "word"), ("jsonl", "token")])
def test_vectors_of_an_engines_workers_at_an_address_are_those_of_this_process(
    tiny: Embedder, sentences: Callable[[int], list[str]], tmp_path: Path, kind: str, unit: str
) -> None:
    wanted = tiny.features([-1], "concat", None, unit, False)
    texts = sentences(150 if unit != "sentence" else 2100)
    for where, engine in ((tmp_path / "own", None), (f"file://{tmp_path}/engine", InTurn())):
        embed_file(tiny, texts, where, wanted, kind=kind, engine=engine)
    assert (tmp_path / "own").read_bytes() == (tmp_path / "engine").read_bytes()


@needs_ray
def test_a_corpus_made_at_an_address_on_two_nodes_is_the_same_though_one_is_lost_before_the_last_shard(
    tiny_tokenizer: Tokenizer, sentences: Callable[[int], list[str]], tmp_path: Path
) -> None:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    from ray.cluster_utils import Cluster

    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(filter(None, sentences(3000))), encoding="utf-8")
    reading = ReadingSettings(unit_bytes=10_000)
    local = build_corpus([str(text)], tmp_path / "local", tiny_tokenizer, reading=reading)
    shards = sum(map(len, local.manifest["shards"].values()))
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        second: Any = cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        lost: list[int] = []

        def lose(progress: BuildProgress) -> None:
            if progress.shards == shards - 1:
                cluster.remove_node(second, allow_graceful=False)
                lost.append(progress.shards)

        with ray_engine(cluster.address) as engine:
            folder = f"file://{tmp_path}/ray"
            build_corpus([f"file://{text}"], folder, tiny_tokenizer, reading=reading, workers=engine, on_progress=lose)
            with pytest.raises(HeedfulError) as raised:
                list(engine.mapped(Tokenizer.load, (tmp_path / "nowhere",), range(1)))
            assert socket.gethostname() in str(raised.value.where)
    finally:
        cluster.shutdown()
    assert lost == [shards - 1]
    names = sorted(path.name for path in (tmp_path / "local").glob("*.*"))
    assert names == sorted(path.name for path in (tmp_path / "ray").glob("*.*")) and len(names) > 6
    assert all((tmp_path / "local" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes() for name in names)
