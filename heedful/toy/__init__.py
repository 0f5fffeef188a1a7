"""The toy world: a small bilingual world that yields data for every task, from a seed."""
