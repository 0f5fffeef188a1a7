"""`python -m heedful` is the `heedful` command."""

from heedful.cli.main import main

main()
