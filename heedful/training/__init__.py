"""One trainer for everything that is trained here; it knows no task and no model class."""
