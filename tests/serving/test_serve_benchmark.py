"""The benchmark of the server reads what wrk says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

SAID = """
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   168.17ms   20.01ms 250.10ms   90.00%
  Latency Distribution
     50%  167.00ms
     75%  180.00ms
     90%  190.00ms
     99%    1.25s
  3804 requests in 10.00s, 31.25MB read
  Non-2xx or 3xx responses: 12
Requests/sec:    380.31
Transfer/sec:      3.12MB
"""


def test_what_wrk_says(script: Any) -> None:
    found = script("serve").parsed(SAID)
    assert found == {"requests_per_second": 380.31, "p50_ms": 167.0, "p99_ms": pytest.approx(1250.0), "errors": 12.0}


def test_ours_is_there_with_merging_and_without(script: Any) -> None:
    peers = ["peer=python peer.py MODEL PORT --merge", "other/embeddings:input=other MODEL"]
    merged, alone, peer, other = script("serve").contenders("folder", peers)
    assert alone.command[-2:] == ["--batch-tokens", "1"] and merged.url.endswith("/v1/models/m/embed")
    assert peer.command == ["python", "peer.py", "folder", str(peer.port), "--merge"] and peer.field == "texts"
    assert other.url.endswith("/embeddings") and other.field == "input" and other.command == ["other", "folder"]


def test_stress_in_short(script: Any, live: Any) -> None:
    stress, server = script("serve_stress"), script("served").Watched(live.url, os.getpid())
    found = stress.aborted(server, "tiny", connections=20)
    assert found["next_answer"] == [1, 32] and found["others_answered"] > 0
    assert found["taken_out_of_the_queue_or_dropped"] + found["answered_to_nobody"] <= 20
    found = stress.overload(server, "tiny", seconds=1.0)
    assert found["wrong_answers"] == 0 and found["requests_a_second_it_bears"] > 0
    found = stress.soak(server, "tiny", seconds=2.0)
    assert found["wrong_answers"] == 0 and found["answered"] > 0
    assert set(found["errors"]) <= {"429"}  # where other tests take the cores meanwhile, it bears less than at first
    assert isinstance(found["memory_growth_percent_in_the_last_half"], float)


def test_sigterm_in_short(script: Any, tiny_folder: Path) -> None:
    found = script("serve_stress").sigterm(str(tiny_folder), rounds=1, clients=3)
    assert found["lost"] == 0 and found["exit_codes"] == {"0": 1} and found["outcomes"]["answered"] > 0


def test_slow_connections_in_short(script: Any, start: Any, tiny_folder: Any) -> None:
    with start((str(tiny_folder),), header_timeout=0.5, body_timeout=0.5) as live:
        server = script("served").Watched(live.url, os.getpid())
        found = script("serve_stress").slow(server, "tiny", seconds=2.0, connections=6)
    assert found["wrong_answers"] == 0 and not found["errors"]
    assert found["closed"] >= 6 and found["longest_head_seconds"] > 0.4


def test_the_growth_of_memory_is_that_of_a_line_through_it(script: Any) -> None:
    stress = script("serve_stress")
    assert stress.growth([100.0, 101.0, 102.0]) == pytest.approx(2.0)
    assert stress.growth([100.0, 103.0, 97.0, 100.0, 97.0, 103.0, 100.0]) == pytest.approx(0.0)
    assert stress.growth([100.0]) == 0.0
