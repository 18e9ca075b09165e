"""Determine the available memory, and raise an error before it is exceeded.

The checks run before anything is computed or paid.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from leastnoise._trusted.check import InputError

VARIABLE = "LEASTNOISE_MEMORY"
_NEGLIGIBLE_BYTES = 2**26  # needs below this number of bytes are never checked
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def available_memory() -> int | None:
    """Return the number of bytes of memory that may be used; None if unknown.

    The number is the value of LEASTNOISE_MEMORY if the variable is set. Otherwise the number is the
    smallest of the amounts that the machine and the control groups of this process have left.
    """
    setting = os.environ.get(VARIABLE, "").strip()
    if setting:
        match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)\s*([KMGT]?)i?B?", setting, re.IGNORECASE)
        if not match:
            raise InputError(f"{VARIABLE} must be a size such as 8G or 500M; got {setting[:40]!r}.")
        return int(float(match[1]) * _UNITS[match[2].upper()])
    kibibytes = _read_number("/proc/meminfo", "MemAvailable")
    limits = [
        None if kibibytes is None else kibibytes * 1024,
        *map(_free_of_group, _control_groups()),
    ]
    return min((size for size in limits if size is not None), default=None)


def require_memory(needed_bytes: int, subject: str, advice: str) -> None:
    """Raise InputError with advice if a computation needs too much memory."""
    if needed_bytes <= _NEGLIGIBLE_BYTES:
        return
    have = available_memory()
    if have is not None and needed_bytes > have:
        limit = f"{VARIABLE}, for example 8G, sets another limit."
        raise InputError(
            f"{subject} needs about {format_bytes(needed_bytes)} of memory; {format_bytes(have)} "
            f"is available. {advice} {limit}"
        )


def format_bytes(byte_count: int) -> str:
    """Return a number of bytes as text, such as ``2.0 GiB``."""
    for unit, shift in (("TiB", 40), ("GiB", 30)):
        if byte_count >= 1 << shift:
            return f"{byte_count / (1 << shift):.1f} {unit}"
    return f"{byte_count / 2**20:.1f} MiB"


def _read_number(path: str, key: str = "") -> int | None:
    """Return the number in a system file such as /proc/meminfo, or None.

    If ``key`` is not empty, the number follows this key. The result is None if the number is not
    known.
    """
    try:
        words = Path(path).read_text(encoding="ascii").replace(":", " ").split()
        return int(words[words.index(key) + 1 if key else 0])
    except (OSError, ValueError, IndexError):
        return None


def _control_groups() -> list[str]:
    """Return the folders of the control groups of this process."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    folders: dict[str, None] = {}
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        top = Path("/sys/fs/cgroup/memory" if kinds else "/sys/fs/cgroup")
        inner = top / path.strip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(top):
                folders[str(folder)] = None
    return list(folders)


def _free_of_group(group_folder: str) -> int | None:
    """Return the free bytes of a control group; None if it has no limit.

    File caches that the system can drop are included.
    """
    for limit, used, dropped in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most = _read_number(f"{group_folder}/{limit}")
        now = _read_number(f"{group_folder}/{used}")
        if most is not None and now is not None and most < 2**60:
            return max(0, most - now + (_read_number(f"{group_folder}/memory.stat", dropped) or 0))
    return None


@contextmanager
def memory_limit() -> Iterator[None]:
    """Limit this process to the available memory within a ``with`` block.

    The limit works on Linux; on other systems, the function does nothing.
    """
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = _read_number("/proc/self/status", "VmData")
    available = available_memory()
    if used is not None and available is not None:
        most = used * 1024 + available
        if before[0] == resource.RLIM_INFINITY or most < before[0]:
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, before)
