"""All exports: one line each."""

from collections.abc import Mapping

from leastnoise._exports._deployment import DEPLOYMENT
from leastnoise._exports._export import Export
from leastnoise._exports._mbi import MBI
from leastnoise._exports._notebook import NOTEBOOK, QUARTO
from leastnoise._exports._review import REVIEW

EXPORTS: Mapping[str, Export] = {one.name: one for one in (REVIEW, DEPLOYMENT, MBI, QUARTO, NOTEBOOK)}
