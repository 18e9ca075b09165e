"""The logger "leastnoise", which programs that run releases can configure.

It says what was read, what is left out, what was paid and what was written. No message has a value
of a row, or an exact number of rows. Without a handler of the program's own nothing is printed.
"""

import logging

LOGGER = logging.getLogger("leastnoise")
LOGGER.addHandler(logging.NullHandler())
