"""Distilling runs: a small model that learns from a large one."""
