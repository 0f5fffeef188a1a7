"""Single HTML files that need no network: reports of runs."""
