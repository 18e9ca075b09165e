"""How rows fit a domain, exactly: for the data holder only.

Nothing that makes a release may import it.
"""

from leastnoise._holder._check import check, count_fit
