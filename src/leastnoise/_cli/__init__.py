"""The commands."""

from leastnoise._cli._main import main
