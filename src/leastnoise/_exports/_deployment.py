"""An entry for the registry of deployments of differential privacy (github.com/opendp/deployments-registry-data), as YAML."""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from leastnoise._accounting import ZCDP, ApproxDP, PureDP, parameters
from leastnoise._exports._export import FILL_IN, Export, Published

_FLAVORS = {PureDP: "Pure DP", ApproxDP: "Approximate DP", ZCDP: "Zero-concentrated DP"}
_HEAD = f"""\
# An entry for the registry of deployments of differential privacy, made from the manifest of a release by leastnoise.
# Replace every "{FILL_IN}"; the registry's own tests say which of them may stay out.
"""


def _up(value: Fraction) -> float:
    """The least double that is not below."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def deployment(published: Published) -> str:
    """The entry as YAML; losses are rounded upwards to doubles."""
    warning = "" if published.release.private else f"# {published.manifest['warning']}\n"
    return _HEAD + warning + "\n".join(_lines(_entry(published), 0)) + "\n"


def _entry(published: Published) -> dict[str, Any]:
    release, manifest = published.release, published.manifest
    budget = release.privacy.budget
    privacy, plan, receipt = manifest["privacy"], manifest["plan"], manifest["receipt"] or {}
    unit, tables = privacy["unit"], manifest["answers"]["tables"]
    errors = "" if isinstance(tables, str) else "; ".join(f"{table['name']} {table['rmse']:.4g}" for table in tables)
    return {
        "url_slug": FILL_IN,
        "deployment": {
            "basic": {
                "name": FILL_IN,
                "data_curators": [{"data_curator_name": FILL_IN, "data_curator_type": FILL_IN}],
                "description": FILL_IN,
                "intended_use": FILL_IN,
                "data_product_type": "Summary statistics",
                "data_product_region": FILL_IN,
                "data_product_sector": FILL_IN,
                "publication_date": manifest["written"],
            },
            "dp_variant": {
                "variant_name": _FLAVORS[type(budget)],
                "data_domain": " ".join(manifest["domain"]["rules"]),
                "unprotected_quantities": f"The program published nothing about the data without noise. {FILL_IN}: anything else.",
            },
            "privacy_loss": {
                "privacy_unit": f"{FILL_IN} (a row)" if unit["column"] is None else f"{FILL_IN} (the column {unit['column']})",
                "privacy_unit_details": " ".join(
                    [f"Neighbouring tables differ in that {unit['in_words']}.", *([unit["second_table"]] if "second_table" in unit else [])]
                ),
                "privacy_parameters": {name: _up(number) for name, number in parameters(budget).items()},
                "privacy_parameters_details": privacy["promise"],
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": FILL_IN,
                "release_type": "One release",
                "release_type_details": f"Payment {receipt['number']} in the ledger of the data set." if "number" in receipt else FILL_IN,
                "data_source_type": FILL_IN,
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": f"{manifest['domain']['rows_outside']} {FILL_IN}: any tuning on the data.",
                "mechanisms": f"leastnoise, strategy {plan['strategy']}: {plan['mechanism_in_words']}.",
                "composition": "The cost is computed exactly over all queries of the release, and a ledger adds up releases.",
                "post_processing": manifest["post_processing"]["note"],
                "justification": FILL_IN,
                "utility": f"Standard errors are {tables}." if isinstance(tables, str) else f"Typical standard errors: {errors}.",
            },
            "administrative": {"status": "Draft", "registry_authors": [FILL_IN], "tier": 3},
        },
    }


def _lines(value: Any, depth: int) -> Iterator[str]:
    """YAML in block form; a text is written as in JSON, which YAML reads as the same text."""
    space = "  " * depth
    for key, entry in value.items():
        if isinstance(entry, dict):
            yield f"{space}{key}:"
            yield from _lines(entry, depth + 1)
        elif isinstance(entry, list):
            yield f"{space}{key}:"
            yield from (f"{space}  - {json.dumps(text, ensure_ascii=False)}" for text in entry)
        else:
            yield f"{space}{key}: {json.dumps(entry, ensure_ascii=False)}"


DEPLOYMENT = Export("registry", ".yaml", "an entry for the registry of deployments of differential privacy", deployment)
