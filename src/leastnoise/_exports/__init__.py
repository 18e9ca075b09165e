"""A finished release in the forms that other people and programs read; post-processing of what is public, so it costs nothing."""

from leastnoise._exports._forms import EXPORTS, FILL_IN, Published
