"""Waiting for another process, without a limit that a busy machine could miss."""

import time

# Seconds before a test says that the other process hangs.
HANGS = 900.0


def wait_until(happened):
    """Return as soon as another process has done something, or fail as one that hangs."""
    end = time.monotonic() + HANGS
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError(f"nothing happened in {HANGS:.0f} seconds")
        time.sleep(0.02)
