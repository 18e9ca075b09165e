"""The studio: pages on this machine to begin, to plan without data, to explore a finished release. It never comes near private rows."""

from leastnoise._studio._server import Studio
