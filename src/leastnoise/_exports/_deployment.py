"""An entry for the registry of deployments of differential privacy (github.com/opendp/deployments-registry-data), as YAML."""

import json
import math
from fractions import Fraction
from pathlib import Path

from leastnoise._accounting import ZCDP, ApproxDP, PureDP, parameters
from leastnoise._exports._export import FILL_IN, Export, Published

_FLAVORS = {PureDP: "Pure DP", ApproxDP: "Approximate DP", ZCDP: "Zero-concentrated DP"}
_TEMPLATE = Path(__file__).with_name("templates") / "registry.yml"


def _up(value: Fraction) -> float:
    """The least double that is not below."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def deployment(published: Published) -> str:
    """The entry as YAML; losses are rounded upwards to doubles. A text is written as in JSON, which YAML reads as the same text."""
    manifest, budget = published.manifest, published.release.privacy.budget
    privacy, plan, receipt = manifest["privacy"], manifest["plan"], manifest["receipt"] or {}
    unit, tables = privacy["unit"], manifest["answers"]["tables"]
    errors = "" if isinstance(tables, str) else "; ".join(f"{table['name']} {table['rmse']:.4g}" for table in tables)
    facts = {
        "written": manifest["written"],
        "variant": _FLAVORS[type(budget)],
        "rules": " ".join(manifest["domain"]["rules"]),
        "unit": f"{FILL_IN} (a row)" if unit["column"] is None else f"{FILL_IN} (the column {unit['column']})",
        "unit_details": " ".join(
            [f"Neighbouring tables differ in that {unit['in_words']}.", *([unit["second_table"]] if "second_table" in unit else [])]
        ),
        "promise": privacy["promise"],
        "payment": f"Payment {receipt['number']} in the ledger of the data set." if "number" in receipt else FILL_IN,
        "outside": f"{manifest['domain']['rows_outside']} {FILL_IN}: any tuning on the data.",
        "mechanisms": f"leastnoise, strategy {plan['strategy']}: {plan['mechanism_in_words']}.",
        "note": manifest["post_processing"]["note"],
        "utility": f"Standard errors are {tables}." if isinstance(tables, str) else f"Typical standard errors: {errors}.",
    }
    return _TEMPLATE.read_text(encoding="utf-8") % {
        "warning": "" if published.release.private else f"# {manifest['warning']}\n",
        "parameters": "\n".join(f"      {name}: {json.dumps(_up(number))}" for name, number in parameters(budget).items()),
        **{name: json.dumps(text, ensure_ascii=False) for name, text in facts.items()},
    }


DEPLOYMENT = Export("registry", ".yaml", "an entry for the registry of deployments of differential privacy", deployment)
