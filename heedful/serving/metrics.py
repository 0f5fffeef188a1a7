"""What a server counts, in the format of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from heedful.serving.batcher import BatchDone

if TYPE_CHECKING:
    from heedful.serving.batcher import Batcher

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STAGES = ("queue", "tokenize", "compute", "answer")


class Metrics:
    """Requests, batches, tokens, and the seconds of each stage."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ("model", "verb", "status")
        self.requests = Counter("heedful_requests", "Requests answered or refused.", labels, registry=registry)
        self.inputs = Counter("heedful_inputs", "Inputs answered.", ("model", "verb"), registry=registry)
        self.batches = Counter("heedful_batches", "Batches computed.", registry=registry)
        self.tokens = Counter("heedful_tokens", "Tokens computed.", registry=registry)
        self.saved = Counter(
            "heedful_padding_saved_tokens", "Tokens that padded batches would have computed as well.", registry=registry
        )
        self.batch_tokens = Histogram(
            "heedful_batch_tokens", "Tokens of a batch.", buckets=[2**i for i in range(2, 15)], registry=registry
        )
        self.batch_requests = Histogram(
            "heedful_batch_requests", "Requests merged in a batch.", buckets=[2**i for i in range(9)], registry=registry
        )
        self.seconds = Histogram(
            "heedful_stage_seconds", "Seconds of a request's stages.", ("stage",), buckets=SECONDS, registry=registry
        )
        self.stages = {stage: self.seconds.labels(stage) for stage in STAGES}
        self.cancelled = Counter("heedful_cancelled", "Requests whose client had gone.", registry=registry)

    def watch(self, batcher: Batcher) -> None:
        """Show the state of a batcher."""
        shown = {
            "heedful_queue_requests": ("Requests that wait.", lambda: len(batcher.queue)),
            "heedful_queue_tokens": ("Tokens that wait.", lambda: batcher.queue.waiting),
            "heedful_worker_deaths": ("Compute threads that died and were replaced.", lambda: batcher.deaths),
            "heedful_tokens_per_second": ("The speed that is reckoned with.", lambda: batcher.speed),
        }
        for name, (about, value) in shown.items():
            Gauge(name, about, registry=self.registry).set_function(value)

    def batch(self, done: BatchDone) -> None:
        """Count a batch."""
        self.batches.inc()
        self.tokens.inc(done.tokens)
        self.saved.inc(done.padding_saved)
        self.batch_tokens.observe(done.tokens)
        self.batch_requests.observe(done.jobs)

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        return generate_latest(self.registry)
