"""Which verb suits a model, for errors of those that do not."""

from __future__ import annotations

from heedful.checkpoints.folder import ModelFolder


def suited_verbs(folder: ModelFolder) -> str:
    """The verbs that a model of this family is for, beside those that every encoder has."""
    family = folder.family
    if family.masked_lm is not None:
        return "use `heedful fill` with it"
    if family.language_model is not None:
        return "it says what comes next: use `heedful generate` or `heedful score` with it"
    if family.two_way_lm is not None:
        return "it says words in both directions: use `heedful score` or `heedful embed` with it"
    if not folder.model_config.contextual:
        return "it has a vector for each word: use `heedful nearest` or `heedful embed` with it"
    return "use `heedful embed` or `heedful finetune` with it"
