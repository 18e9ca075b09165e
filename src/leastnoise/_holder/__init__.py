"""Count exactly how rows fit a domain, for the data holder only.

Code that makes a release may not import this package.
"""

from leastnoise._holder._check import check, count_fit
