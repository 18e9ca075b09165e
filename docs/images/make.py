"""Take the pictures of the documentation.

They show the report of the demonstration and a first release from the studio.

    python docs/images/make.py
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
BROWSER = HERE.parents[1] / "tests" / "browser"
SIZES = {"report.png": (1280, 1500), "report-phone.png": (390, 1500)}
PROGRAM = Path(sys.executable).with_name("leastnoise")


def main() -> None:
    """Release the generated survey by command and by the studio, and take pictures."""
    chromium = shutil.which("chromium") or sys.exit(
        "the pictures need chromium (apt-get install chromium)"
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "demo")
        # The command is our own program.
        subprocess.run([PROGRAM, "demo", "--out", out], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        for name, size in SIZES.items():
            _picture(chromium, name, size, out / "release" / "report.html")
        first = Path(folder, "first")
        first.mkdir()
        shutil.copy(out / "people.parquet", first)
        _fill_in(chromium, first)
        subprocess.run(  # noqa: S603
            [PROGRAM, "release", "people.toml", "--out", "release"],
            cwd=first,
            check=True,
            stdout=subprocess.DEVNULL,
        )  # noqa: RUF100, S603
        _picture(chromium, "first-report.png", (1000, 1100), first / "release" / "report.html")


def _picture(chromium: str, name: str, size: tuple[int, int], page: Path) -> None:
    """Take a picture of a local page."""
    command = [
        chromium,
        "--headless",
        "--no-sandbox",
        "--hide-scrollbars",
        f"--window-size={size[0]},{size[1]}",
    ]
    subprocess.run(  # noqa: S603
        [*command, f"--screenshot={HERE / name}", page.as_uri()], check=True, capture_output=True
    )  # noqa: RUF100, S603
    print(HERE / name)


def _fill_in(chromium: str, folder: Path) -> None:
    """Open the studio on the file in a folder, and fill in its first page."""
    # The command `npm` installs the driver of the browser.
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=BROWSER, check=True)  # noqa: S607
    studio = subprocess.Popen(  # noqa: S603
        [PROGRAM, "studio", "people.parquet"], cwd=folder, stdout=subprocess.PIPE, text=True
    )  # noqa: RUF100, S603
    try:
        address = next(
            found[0] for line in studio.stdout or () if (found := re.search(r"http://\S+", line))
        )
        subprocess.run(["node", HERE / "first.mjs", chromium, address, HERE], check=True)  # noqa: S603, S607
    finally:
        studio.terminate()
        studio.wait()


if __name__ == "__main__":
    main()
