"""What comes before a run: a tokenizer and a corpus from files of text."""
