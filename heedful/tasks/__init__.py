"""One file a problem: what is trained, what is predicted, how it is scored."""
