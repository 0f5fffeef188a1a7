"""Runs: settings in, events out, a `Run` back. The command line, a notebook, several seeds and a test are callers."""
