"""A linear-chain conditional random field: Lafferty, McCallum and Pereira, 2001; over BiLSTMs: Huang, Xu and Yu, 2015.

The score of the labels y_1 … y_n of a sequence, with emissions e from the layers below, is

    s(y) = start[y_1] + Σ_t e_t[y_t] + Σ_t transition[y_t-1, y_t] + end[y_n],   p(y) = exp s(y) / Z,   Z = Σ_y exp s(y)

Sequences lie flat, one after the other. One recursion over time, all sequences at once, gives log Z, or with the
maximum in the place of the sum the score of the best labels. Its gradient with respect to the emissions says the rest:
that of log Z is the probability of each label at each place, that of the maximum is 1 at the best labels and else 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.nn.recurrent import packed_order

# exp of it is 0, and unlike -inf it leaves finite gradients where nothing is allowed.
FORBIDDEN = -1e9

Over = Callable[[Tensor], Tensor]


class Crf(nn.Module):
    """Scores of starting with, of passing between and of ending with K labels, all zero before training.

    `allowed` (K, K) is True at [i, j] where j may follow i, `starts` (K,) where a sequence may begin. What is not
    allowed has no probability, is never decoded, and is not trained.
    """

    allowed: Tensor
    may_start: Tensor

    def __init__(self, labels: int, allowed: Tensor | None = None, starts: Tensor | None = None) -> None:
        super().__init__()
        self.starts = nn.Parameter(torch.zeros(labels))
        self.transitions = nn.Parameter(torch.zeros(labels, labels))
        self.ends = nn.Parameter(torch.zeros(labels))
        # Whoever makes the model knows what is allowed, so these are not weights to be saved.
        everything = torch.ones(labels, labels, dtype=torch.bool)
        self.register_buffer("allowed", everything if allowed is None else allowed, persistent=False)
        self.register_buffer("may_start", everything[0] if starts is None else starts, persistent=False)

    def loss(self, emissions: Tensor, lengths: Sequence[int], targets: Tensor) -> Tensor:
        """−Σ log p(targets) over the sequences; emissions (R, K), targets (R,), R rows in runs of `lengths`."""
        starts, transitions, ends = self._counts(lengths, targets)
        self._check_allowed(starts, transitions)
        score = emissions.gather(1, targets[:, None]).sum()
        score = score + (starts * self.starts).sum() + (transitions * self.transitions).sum() + (ends * self.ends).sum()
        return self._over_paths(emissions, lengths, _log_sum) - score

    def decode(self, emissions: Tensor, lengths: Sequence[int]) -> list[list[int]]:
        """The labels of the highest score, sequence by sequence: Viterbi's."""
        best = self._gradient(emissions, lengths, _maximum).argmax(-1)
        return [labels.tolist() for labels in torch.split(best, list(lengths))]

    def marginals(self, emissions: Tensor, lengths: Sequence[int]) -> Tensor:
        """The probability of each label at each place, (R, K)."""
        return self._gradient(emissions, lengths, _log_sum)

    def table(self) -> Tensor:
        """All its scores, (K + 2, K): those of starting, of passing on from each label, and of ending."""
        starts, transitions = self._where_allowed()
        return torch.cat([starts[None], transitions, self.ends[None]])

    @classmethod
    def of_table(cls, table: Tensor) -> Crf:
        """The one that has these scores."""
        crf = cls(table.shape[1])
        for scores, rows in ((crf.starts, table[0]), (crf.transitions, table[1:-1]), (crf.ends, table[-1])):
            scores.data.copy_(rows)
        return crf

    def _where_allowed(self) -> tuple[Tensor, Tensor]:
        """The scores of starting and of passing on."""
        starts = self.starts.masked_fill(~self.may_start, FORBIDDEN)
        return starts, self.transitions.masked_fill(~self.allowed, FORBIDDEN)

    def _over_paths(self, emissions: Tensor, lengths: Sequence[int], over: Over) -> Tensor:
        """The `over` of the scores of all labellings of a sequence, added up over the sequences."""
        order, sizes = packed_order(lengths)
        if not len(order):
            return emissions.sum()
        starts, transitions = self._where_allowed()
        transitions = transitions.T  # (to, from)
        steps = torch.split(emissions[order.to(emissions.device)], sizes.tolist())
        scores = starts + steps[0]  # (B, K)
        for step in steps[1:]:
            going = scores[: len(step), None, :] + transitions  # (b, to, from)
            scores = torch.cat([over(going) + step, scores[len(step) :]])
        return over(scores + self.ends).sum()

    def _gradient(self, emissions: Tensor, lengths: Sequence[int], over: Over) -> Tensor:
        # A caller who only predicts may have switched gradients off; here they are the way to the answer.
        with torch.inference_mode(False), torch.enable_grad():
            leaf = emissions.clone().detach().requires_grad_()
            return torch.autograd.grad(self._over_paths(leaf, lengths, over), leaf)[0]

    def _counts(self, lengths: Sequence[int], targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How often sequences start with each label, pass from one to another, and end with each."""
        labels = len(self.starts)
        size = torch.tensor([n for n in lengths if n], dtype=torch.long, device=targets.device)
        last = size.cumsum(0) - 1
        first = last - size + 1
        later = torch.ones_like(targets, dtype=torch.bool).index_fill(0, first, False).nonzero().squeeze(1)
        pairs = targets[later - 1] * labels + targets[later]
        starts, ends = (targets[places].bincount(minlength=labels) for places in (first, last))
        return starts, pairs.bincount(minlength=labels**2).view(labels, labels), ends

    def _check_allowed(self, starts: Tensor, transitions: Tensor) -> None:
        wrong = [f"label {after} follows label {before}" for before, after in _places(transitions, self.allowed)]
        wrong += [f"a sequence starts with label {label}" for (label,) in _places(starts, self.may_start)]
        if wrong:
            raise HeedfulError(
                f"{wrong[0]}, which this model does not allow",
                remedy="fix the tags: in BIO, I-X stands only after B-X or I-X",
            )


def bio_transitions(labels: Sequence[str]) -> tuple[Tensor, Tensor]:
    """What may follow what (K, K) and what may come first (K,): I-X comes after B-X or I-X only, all else anywhere."""

    def may_follow(before: str, after: str) -> bool:
        return not after.startswith("I-") or before in (f"B-{after[2:]}", after)

    allowed = [[may_follow(before, after) for after in labels] for before in labels]
    return torch.tensor(allowed), torch.tensor([may_follow("", label) for label in labels])


def _log_sum(scores: Tensor) -> Tensor:
    return scores.logsumexp(-1)


def _maximum(scores: Tensor) -> Tensor:
    # Not amax, whose gradient would be shared by equals: the path must be one.
    return scores.max(-1).values


def _places(counts: Tensor, allowed: Tensor) -> list[list[int]]:
    found: list[list[int]] = ((counts > 0) & ~allowed).nonzero().tolist()
    return found
