"""A finished release in the forms that other people and programs read; post-processing of what is public, so it costs nothing."""

from collections.abc import Mapping

from leastnoise._exports._deployment import DEPLOYMENT
from leastnoise._exports._export import FILL_IN, Export, Published
from leastnoise._exports._mbi import MBI
from leastnoise._exports._notebook import NOTEBOOK
from leastnoise._exports._review import REVIEW

EXPORTS: Mapping[str, Export] = {export.name: export for export in (REVIEW, DEPLOYMENT, MBI, NOTEBOOK)}
