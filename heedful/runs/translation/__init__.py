"""Runs that learn to translate: what one is told, what it works with, and what it leaves behind."""
