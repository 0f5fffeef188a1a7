"""From text files to token shards, and from these to pretraining examples."""
