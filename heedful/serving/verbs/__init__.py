"""One file a verb: what a request says, what is computed together, and what the answer is."""
