"""The ladder: every kind of language model on one corpus with one budget, and one table of what each can do."""
