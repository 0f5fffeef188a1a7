"""Readers of labelled data, and what to know of it before training."""
