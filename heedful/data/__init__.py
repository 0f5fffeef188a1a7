"""From encoded texts to batches."""
