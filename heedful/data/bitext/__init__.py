"""Sentences and their translations: read, encoded, dealt out to training steps."""
