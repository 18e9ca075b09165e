"""The commands."""

from leastnoise._cli._main import load_command, main, program
