"""The text side, without torch: tokenizers, sentences, words, documents."""
