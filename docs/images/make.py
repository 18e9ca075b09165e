"""Makes the pictures of the documentation: the report of the demonstration in headless Chromium, and small versions of its charts.

python docs/images/make.py
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SIZES = {"report.png": (1280, 1500), "report-phone.png": (390, 1500)}


def main() -> None:
    """Make a release of the generated survey, and take its picture."""
    chromium = shutil.which("chromium") or sys.exit("the pictures need chromium (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "demo")
        program = Path(sys.executable).with_name("leastnoise")
        subprocess.run([program, "demo", "--out", out], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own program
        for name, (width, height) in SIZES.items():
            command = [chromium, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
            command += [f"--screenshot={HERE / name}", (out / "release" / "report.html").as_uri()]
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - found on the path
            print(HERE / name)


if __name__ == "__main__":
    main()
