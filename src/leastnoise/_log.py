"""The logger "leastnoise", which programs that run releases can configure.

The messages of the logger report the columns that are read, the rows that tables leave out,
payments, and written files. No message has a value of a row, or an exact number of rows. Nothing is
printed unless the program adds a handler.
"""

import logging

LOGGER = logging.getLogger("leastnoise")
LOGGER.addHandler(logging.NullHandler())
