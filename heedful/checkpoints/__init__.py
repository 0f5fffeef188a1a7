"""The model folder: configs, weights and tokenizers on disk, in the Hugging Face layout."""
