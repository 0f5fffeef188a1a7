"""The command line, one file a verb; the only place where everything meets."""
