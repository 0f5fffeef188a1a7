"""Approximate search over very many lines: faiss's graph of neighbours (HNSW), kept beside the vectors it is made of.

It is made, in a minute or so for a million lines, when it is first asked for and after lines were added.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.atomic import atomic_path
from heedful.errors import HeedfulError

GRAPH = "graph.faiss"
NEIGHBOURS = 32  # of each line in the graph
EFFORT = 128  # lines that are kept in view while the graph is searched


def nearest_by_graph(
    folder: Path, parts: Sequence[NDArray[np.float32]], queries: NDArray[np.float32], top: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The cosines and numbers, (queries, top), of about the nearest lines, which are numbered through all parts."""
    graph = _graph(folder, parts)
    graph.hnsw.efSearch = max(EFFORT, 2 * top)
    cosines, numbers = graph.search(np.ascontiguousarray(queries), min(top, graph.ntotal))
    return cosines, numbers


def _graph(folder: Path, parts: Sequence[NDArray[np.float32]]) -> Any:
    if find_spec("faiss") is None:
        remedy = "pip install 'heedful[faiss]', or search exactly"
        raise HeedfulError("approximate search needs faiss, which is not installed", remedy=remedy)
    import faiss

    count, width = sum(map(len, parts)), parts[0].shape[1]
    path = folder / GRAPH
    if path.is_file():
        try:
            graph = faiss.read_index(str(path))
        except RuntimeError:
            graph = None  # it is made of the vectors, and can be made again
        if graph is not None and (graph.ntotal, graph.d) == (count, width):
            return graph
    graph = faiss.IndexHNSWFlat(width, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    for part in parts:
        graph.add(np.ascontiguousarray(part))
    with atomic_path(path) as temporary:
        faiss.write_index(graph, str(temporary))
    return graph
