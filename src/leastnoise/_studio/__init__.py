"""The studio: a page on this machine to plan without data, or to explore a finished release. It never comes near private rows."""

from leastnoise._studio._server import Opened, opened
