"""From a model folder to answers: features and vectors."""
