"""One file a model, its config dataclass above its module."""
