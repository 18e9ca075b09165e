"""How rows fit a domain, exactly and without noise: for the data holder alone; nothing that makes a release may import it."""

from leastnoise._holder._check import check
