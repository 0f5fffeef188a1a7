"""Fine-tuning runs: what one is told, what it works with, and what it leaves behind."""
