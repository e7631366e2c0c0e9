"""`python -m syndic` is the command line."""

from syndic.cli import main

main()
