"""`python -m fewtag` is the command `fewtag`."""

from ._command import main

main()
