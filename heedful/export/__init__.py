"""Models in the formats of other engines, each compared with ours after it is written."""
