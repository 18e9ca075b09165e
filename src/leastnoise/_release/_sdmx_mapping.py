"""Read the section ``[output.sdmx]`` of a spec: concepts, codes and units.

Without this section, ids are derived from the names in the spec.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leastnoise._domain import Domain
from leastnoise._texts import check_key, first_moment
from leastnoise._trusted.check import InputError, one_of, refuse
from leastnoise._workload import level_names

TIME_PERIOD = "TIME_PERIOD"
FLOWS = ("table", "quantity")
"""One data flow for each table, or one for all tables of a quantity."""
OBSERVATION_STATUS = ("A", "B", "D", "E", "M", "N", "O", "P", "Q", "U")
"""Codes of CL_OBS_STATUS (SDMX Statistical Working Group, version 2.2) that answers may have."""
_DEFAULT_STATUS = {"published": "E", "suppressed": "Q", "unreliable": "U"}
_KEYS = ("agency", "flows", "concepts", "codes", "units", "status", "period")
SDMX_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
"""The ids of concepts and agencies."""
_CODE = re.compile(r"[A-Za-z0-9_@$-]+")
_RESERVED = {"OBS_VALUE", "OBS_STATUS", "UNIT_MEASURE", "CONF_LEVEL", "STRUCTURE", "ACTION"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SdmxMapping:
    """The ids that an office uses for a release in SDMX.

    Attributes:
        agency: the id of the agency; if empty, it is derived from the agency's name.
        flows: "table" for one data flow per table, or "quantity" for one per quantity.
        concepts: maps attributes and levels to ids of concepts; the key of a level is for example
            ``store:region``.
        codes: for each attribute, maps labels to codes.
        units: maps ``rows``, ``units`` and measures to the code of their unit.
        status: the codes of published, suppressed and unreliable answers.
        period: the reference period of tables without periods, such as ``2025``; empty for none.
    """

    agency: str = ""
    flows: str = "table"
    concepts: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    status: Mapping[str, str] = field(default_factory=lambda: dict(_DEFAULT_STATUS))
    period: str = ""

    def concept_of(self, key: str, attribute: str) -> str:
        """Return the stated concept of a key column, or "" if none is stated.

        If no concept is stated for a level, the level has the concept of its attribute.
        """
        return self.concepts.get(key) or self.concepts.get(attribute, "")


def read_sdmx_mapping(section: object) -> SdmxMapping:
    """Return the mapping that a section ``[output.sdmx]`` states, checked.

    Raises:
        InputError: a key is unknown, or SDMX does not allow an id.
    """
    if not isinstance(section, Mapping):
        raise refuse("sdmx", section, "a table with " + ", ".join(_KEYS))
    for key in section:
        check_key("a key of sdmx", key, _KEYS)
    concepts = _read_ids("concepts", section.get("concepts", {}), SDMX_ID)
    used = list(concepts.values())
    for name, concept in concepts.items():
        if concept in _RESERVED or concept == TIME_PERIOD or used.count(concept) > 1:
            allowed = "an id that is not reserved and that no other concept has"
            raise refuse(f"sdmx concepts {name}", concept, allowed)
    codes = section.get("codes", {})
    if not isinstance(codes, Mapping):
        raise refuse("sdmx codes", codes, "a table of attributes with their codes")
    status = _read_ids("status", section.get("status", {}), _CODE)
    for answer, code in status.items():
        check_key("a key of sdmx status", answer, _DEFAULT_STATUS)
        one_of(f"sdmx status {answer}", code, OBSERVATION_STATUS)
    agency = section.get("agency", "")
    if agency != "":
        _check_id("sdmx agency", agency, SDMX_ID)
    period = section.get("period", "")
    if not isinstance(period, str) or (period and sdmx_period(period) is None):
        raise refuse("sdmx period", period, "a period, such as '2025', '2025-Q3' or '2025-08'")
    return SdmxMapping(
        agency=agency,
        flows=one_of("sdmx flows", section.get("flows", "table"), FLOWS),
        concepts=concepts,
        codes={
            name: _read_ids(f"codes {name}", of_attribute, _CODE)
            for name, of_attribute in codes.items()
        },
        units=_read_ids("units", section.get("units", {}), _CODE),
        status={**_DEFAULT_STATUS, **status},
        period=sdmx_period(period) or "",
    )


def check_sdmx_mapping(section: Mapping[str, Any], domain: Domain) -> None:
    """Raise if a mapping names attributes, labels or measures not in the domain."""
    mapping = read_sdmx_mapping(section)
    levels: list[str] = []
    for name in domain.names:
        levels += [f"{name}:{level}" for level in level_names(domain.kind(name))]
    for key in mapping.concepts:
        check_key("a key of sdmx concepts", key, [*domain.names, *levels])
    for name, codes in mapping.codes.items():
        check_key("a key of sdmx codes", name, domain.names)
        labels = [str(label) for label in domain.kind(name).labels]
        for label in codes:
            check_key(f"a key of sdmx codes {name}", label, labels)
        if len(set(codes.values())) < len(codes):
            raise InputError(
                f"The sdmx codes of {name} must differ from each other; two of them are equal."
            )
    for key in mapping.units:
        check_key("a key of sdmx units", key, ["rows", "units", *domain.measures])


def sdmx_period(label: str) -> str | None:
    """Return the period of a label in SDMX notation; None if it is not a period.

    >>> sdmx_period("2024-W05"), sdmx_period("2024-01-31 07:00"), sdmx_period("<= 2024")
    ('2024-W05', '2024-01-31T07:00:00', None)
    """
    if first_moment(label) is None:
        return None
    day, blank, hour = label.partition(" ")
    return f"{day}T{hour}:00" if blank else day


def _read_ids(name: str, value: object, pattern: re.Pattern[str]) -> dict[str, str]:
    """Return a table of ids after checking each id."""
    if not isinstance(value, Mapping):
        raise refuse(f"sdmx {name}", value, "a table of ids, such as { region = 'REF_AREA' }")
    for key, text in value.items():
        _check_id(f"sdmx {name} {key}", text, pattern)
    return dict(value)


def _check_id(name: str, value: object, pattern: re.Pattern[str]) -> None:
    """Raise if SDMX does not allow an id."""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise refuse(name, value, "an id of letters, digits, '_' and '-', such as 'REF_AREA'")
