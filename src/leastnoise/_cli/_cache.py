"""The option that plans anew."""

import os

import click


def _off(_context: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click passes flags by name
    if wanted:
        os.environ["LEASTNOISE_CACHE"] = "off"


without_cache = click.option(
    "--no-cache", is_flag=True, expose_value=False, callback=_off, help="Plan anew, and keep no plan in the cache folder."
)
"""For commands that plan; the same as LEASTNOISE_CACHE=off in the environment."""
