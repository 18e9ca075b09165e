"""The logger "leastnoise", which programs that run releases can configure.

It reports the rows read and left out, the payments and the written files. No message has a value
of a row, or an exact number of rows. Without a handler of the program's own nothing is printed.
"""

import logging

LOGGER = logging.getLogger("leastnoise")
LOGGER.addHandler(logging.NullHandler())
