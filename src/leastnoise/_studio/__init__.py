"""The studio: local pages to draft specs, plan and explore releases.

It never reads private rows.
"""

from leastnoise._studio._server import Studio
