"""A sample of the faults of ``make faults``, in calls of a release and bytes of a ledger."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import HANGS

pytestmark = pytest.mark.slow

RUN = Path(__file__).with_name("run.py")


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the library of faults is made for Linux"
)
@pytest.mark.skipif(
    shutil.which("cc") is None,
    reason="the library of faults is made by a C compiler, and there is no cc",
)
def test_hundreds_of_faults_leave_nothing_wrong():
    result = subprocess.run(
        [sys.executable, str(RUN), "--every", "797", "--damage", "839"],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    total = re.search(r"injected ([\d,]+) of", result.stdout)
    assert total is not None
    assert int(total[1].replace(",", "")) > 160
