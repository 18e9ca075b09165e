"""The proofs beside the noise modules are about the code as it is."""

import hashlib
import re
from pathlib import Path

import pytest

from leastnoise.measure import _laplace

FOLDER = Path(_laplace.__file__).parent
PROOFS = FOLDER / "PROOFS-noise.md"
PROVED = ["_bernoulli.py", "_drawing.py", "_entropy.py", "_gaussian.py", "_laplace.py"]


@pytest.mark.parametrize("name", PROVED)
def test_the_proof_was_read_for_this_code(name):
    digits = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()[:16]
    recorded = re.search(rf"^\| `{name}` \| `([0-9a-f]+)` \|$", PROOFS.read_text("utf-8"), re.MULTILINE)
    assert recorded is not None
    assert recorded[1] == digits, f"{name} was changed: read its proof in {PROOFS.name} again, then record {digits}"


@pytest.mark.parametrize("name", PROVED)
def test_every_label_in_the_code_is_proved(name):
    proved = set(re.findall(r"\*\*([BDGLRT]\d)|, ([BDGLRT]\d)[.*]", PROOFS.read_text("utf-8")))
    labels = {label for found in proved for label in found if label}
    used = set(re.findall(r"\b([BDGLRT]\d)[ab]?\b", (FOLDER / name).read_text("utf-8")))
    assert used <= labels
    assert used or name == "_entropy.py"
