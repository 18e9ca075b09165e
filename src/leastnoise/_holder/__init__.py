"""How rows fit a domain, exactly and without noise: for the data's holder alone, and out of reach of all that makes a release."""

from leastnoise._holder._check import check
