"""Describe a finished release for data catalogues and for readers of CSV.

- metadata of the CSV files in the W3C vocabulary CSV on the Web (CSVW);
- the entry of a data set in the application profile DCAT-AP 3, as JSON-LD.

Facts that the release does not contain are marked ``FILL IN``.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from urllib.parse import quote

import numpy as np

from leastnoise._domain import Dates
from leastnoise._pages import report_file
from leastnoise._plan import SeriesPlan
from leastnoise._publication._manifest import Manifest
from leastnoise._publication._workbook_and_sdmx import result_headings, result_title
from leastnoise._release import Options, Release, ResultTable, describe_columns, make_file_name
from leastnoise._texts import Catalogue, load_catalogue, name_attribute
from leastnoise._trusted.check import InputError

FILL_IN = "FILL IN"
FILL_IN_ADDRESS = "https://example.org/FILL-IN"
"""An address to replace: JSON-LD is read as nothing if an address is not valid."""
_MOST_DESCRIBED_TABLES = 200  # if there are more tables, several tables share a file
_AUTHORITY = "http://publications.europa.eu/resource/authority"
_FREQUENCIES = {
    "year": "ANNUAL",
    "quarter": "QUARTERLY",
    "month": "MONTHLY",
    "week": "WEEKLY",
    "day": "DAILY",
}
_DCAT_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


@dataclass(frozen=True, slots=True)
class Publication:
    """A release with its manifest and the name of its directory."""

    release: Release
    manifest: Manifest
    directory: str


def format_csvw(publication: Publication) -> str:
    """Return the metadata of the CSV files in the W3C vocabulary CSVW, as JSON.

    Programs read it as ``csv-metadata.json`` in the directory of the release.

    Raises:
        InputError: the release has no CSV files, or several tables share one file.
    """
    release = publication.release
    options = release.options
    if "csv" not in options.formats:
        raise InputError(
            "CSVW describes CSV files, and this release has none. Release it with 'csv' in formats."
        )
    if len(release.tables) > _MOST_DESCRIBED_TABLES:
        raise InputError(
            f"CSVW metadata describe at most {_MOST_DESCRIBED_TABLES} tables, each with a "
            f"separate file; this release has {len(release.tables)} tables, which share files."
        )
    results: list[tuple[ResultTable, int]] = [
        (result, len(release.tables)) for result in release.tables
    ]
    results += [(result, len(release.statistics)) for result in release.statistics]
    return _to_json(
        {
            "@context": ["http://www.w3.org/ns/csvw", {"@language": options.language}],
            **_common_facts(publication),
            "tables": [
                _describe_file(result, table_count, options) for result, table_count in results
            ],
        }
    )


def _common_facts(publication: Publication) -> dict[str, Any]:
    """Return title, publisher, source and date of a release as Dublin Core."""
    options = publication.release.options
    facts: dict[str, Any] = {}
    for key, name in (("dc:title", "title"), ("dc:publisher", "agency"), ("dc:source", "source")):
        if options.text(name):
            facts[key] = _option_text(options, name)
    facts["dc:issued"] = {
        "@value": publication.manifest.written.isoformat(),
        "@type": "xsd:date",
    }
    return facts


def _describe_file(result: ResultTable, table_count: int, options: Options) -> dict[str, Any]:
    """Return the CSVW description of a result's CSV file."""
    meanings = describe_columns(result)
    keys = result.key_columns()
    headings = {
        language: dict(zip(keys, result_headings(result, catalogue), strict=True))
        for language, catalogue in _catalogues(options).items()
    }
    columns = []
    for name, values in result.columns().items():
        column: dict[str, Any] = {"name": quote(name, safe=""), "titles": name}
        if name in keys:
            column["dc:title"] = [
                {"@value": headings[language][name], "@language": language}
                for language in options.languages
            ]
        elif name in meanings:
            column["dc:description"] = {"@value": meanings[name], "@language": "en"}
        column["datatype"] = _csvw_type(values)
        columns.append(column)
    titles = {
        language: result_title(result, catalogue)
        for language, catalogue in _catalogues(options).items()
    }
    return {
        "url": f"answers/{make_file_name(result.id, result.name, table_count)}.csv",
        "dc:title": _in_languages(options, titles.__getitem__),
        "tableSchema": {
            "columns": columns,
            "primaryKey": [quote(name, safe="") for name in ("query", *keys)],
        },
    }


def _csvw_type(values: np.ndarray[Any, Any]) -> str:
    """Return the CSVW data type of an array: string, integer or double."""
    if values.dtype == object:
        return "string"
    return "integer" if np.issubdtype(values.dtype, np.integer) else "double"


def _catalogues(options: Options) -> Mapping[str, Catalogue]:
    """Return a release's catalogues of texts by language."""
    return {language: options.catalogue(language) for language in options.languages}


def _in_languages(options: Options, text_in: Callable[[str], str]) -> list[dict[str, str]]:
    """Return a text in all languages of a release, as JSON-LD."""
    return [{"@value": text_in(language), "@language": language} for language in options.languages]


def _option_text(options: Options, name: str) -> list[dict[str, str]]:
    """Return a text option in all languages of a release, as JSON-LD."""
    return _in_languages(options, lambda language: options.text(name, language))


def format_dcat(publication: Publication) -> str:
    """Return the release's data set entry in DCAT-AP 3, as JSON-LD."""
    release = publication.release
    options = release.options
    facts: dict[str, Any] = {
        "@context": _DCAT_CONTEXT,
        "@id": FILL_IN_ADDRESS,
        "@type": "dcat:Dataset",
        "dct:title": _in_languages(
            options, lambda language: options.text("title", language) or FILL_IN
        ),
        "dct:description": _in_languages(
            options, lambda language: _describe_tables(release, options.catalogue(language))
        ),
        "dct:publisher": {
            "@type": "foaf:Agent",
            "foaf:name": _in_languages(
                options, lambda language: options.text("agency", language) or FILL_IN
            ),
        },
        "dcat:contactPoint": _describe_contact(options.text("contact")),
        "dcat:keyword": _list_keywords(release),
        "dct:issued": _date(publication.manifest.written.isoformat()),
        "dct:language": [
            _concept(
                f"{_AUTHORITY}/language/{load_catalogue(language).say('authority_code')}",
                "dct:LinguisticSystem",
            )
            for language in options.languages
        ],
        "dct:accessRights": _concept(f"{_AUTHORITY}/access-right/PUBLIC", "dct:RightsStatement"),
        "dcat:theme": {
            **_concept(f"{FILL_IN_ADDRESS}/theme", "skos:Concept"),
            "skos:prefLabel": FILL_IN,
        },
        "dct:spatial": _concept(f"{FILL_IN_ADDRESS}/place", "dct:Location"),
        **_describe_time(release),
    }
    if options.text("source"):
        facts["dct:provenance"] = {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": _option_text(options, "source"),
        }
    facts["dcat:distribution"] = [
        _describe_distribution(file, file_type, options)
        for file, file_type in _list_distributions(options)
    ]
    return _to_json(facts)


def _describe_distribution(file: str, file_type: str, options: Options) -> dict[str, Any]:
    """Return the DCAT distribution for files of one type."""
    catalogues = _catalogues(options)
    return {
        "@type": "dcat:Distribution",
        "dct:title": file,
        "dct:description": _in_languages(
            options, lambda language: catalogues[language].say("meta_file", format=file_type)
        ),
        "dcat:accessURL": _concept(f"{FILL_IN_ADDRESS}/file", "rdfs:Resource"),
        "dct:format": _concept(f"{_AUTHORITY}/file-type/{file_type}", "dct:MediaTypeOrExtent"),
        "dct:license": _concept(f"{FILL_IN_ADDRESS}/license", "dct:LicenseDocument"),
    }


def _concept(address: str, kind: str) -> dict[str, str]:
    """Return a JSON-LD node that has an address and the class validators require."""
    return {"@id": address, "@type": kind}


def _describe_contact(contact: str) -> dict[str, Any]:
    """Return the DCAT contact point; a contact may be an e-mail address."""
    facts: dict[str, Any] = {"@type": "vcard:Kind", "vcard:fn": contact or FILL_IN}
    if re.fullmatch(r"[^@\s]+@[^@\s]+", contact):
        facts["vcard:hasEmail"] = {"@id": f"mailto:{contact}"}
    return facts


def _list_keywords(release: Release) -> list[dict[str, str]]:
    """Return the DCAT keywords: the attributes' names in each language."""
    options = release.options
    domain = release.plan.domain
    used = set(chain.from_iterable(product.attributes for product in release.workload))
    keywords = []
    for language, catalogue in _catalogues(options).items():
        names = [catalogue.say("meta_keyword")]
        names += [name_attribute(name, catalogue) for name in domain.names if name in used]
        keywords += [{"@value": name, "@language": language} for name in dict.fromkeys(names)]
    return keywords


def _describe_tables(release: Release, catalogue: Catalogue) -> str:
    """Return the titles of the first results, after a warning if a seed was used."""
    results: Sequence[ResultTable] = [*release.statistics[:20], *release.tables[:20]]
    titles = list(dict.fromkeys(result_title(result, catalogue) for result in results))
    text = "; ".join(titles)
    return text if release.private else f"{catalogue.say('not_private')} {text}"


def _describe_time(release: Release) -> dict[str, Any]:
    """Return the DCAT entries on the covered period and a series' frequency."""
    domain = release.plan.domain
    used = set(chain.from_iterable(product.attributes for product in release.workload))
    kinds = [domain.kind(name) for name in domain.names if name in used]
    dates = next((kind for kind in kinds if isinstance(kind, Dates)), None)
    if dates is None:
        return {}
    facts: dict[str, Any] = {
        "dct:temporal": {
            "@type": "dct:PeriodOfTime",
            "dcat:startDate": _date(str(dates.start)[:10]),
            "dcat:endDate": _date(str(dates.end)[:10]),
        }
    }
    if isinstance(release.plan, SeriesPlan) and dates.by in _FREQUENCIES:
        frequency = f"{_AUTHORITY}/frequency/{_FREQUENCIES[dates.by]}"
        facts["dct:accrualPeriodicity"] = _concept(frequency, "dct:Frequency")
    return facts


def _list_distributions(options: Options) -> list[tuple[str, str]]:
    """Return name and file type of the files that readers download."""
    files = [(report_file(options, language), "HTML") for language in options.languages]
    if "csv" in options.formats:
        files.append(("answers/*.csv", "CSV"))
    if "parquet" in options.formats:
        files.append(("answers/*.parquet", "PARQUET"))
    if "xlsx" in options.formats:
        files += [("publication.xlsx", "XLSX"), ("answers.xlsx", "XLSX")]
    if "sdmx" in options.formats:
        files.append(("structure.sdmx.xml", "XML"))
    return files


def _date(day: str) -> dict[str, str]:
    """Return a date in ISO form as a JSON-LD value."""
    return {"@type": "xsd:date", "@value": day}


def _to_json(value: Mapping[str, Any]) -> str:
    """Return a JSON-LD document as indented text."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
