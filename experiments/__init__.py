"""Papers' figures and tables from our own runs. Not part of the library: `leastnoise experiments NAME` finds them in a source checkout."""
