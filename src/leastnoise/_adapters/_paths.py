"""Which files a path means: a file, a folder or a pattern. Only names decide; nothing of a file is read.

Nobody needs to believe it: files that are not below the path, of another kind than their names say, or there twice are refused.
"""

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from leastnoise._adapters._column import FileKind
from leastnoise._check import InputError, did_you_mean, message

_OTHER_KIND = "the source must be a file that ends in {endings}; got {path!r}. Convert it, or read it into a data frame."
_NO_FILE = "the source must be a file that exists; there is no file {path!r}."


def endings(kinds: Sequence[FileKind]) -> str:
    """What names of files may end in."""
    names = [ending for kind in kinds for ending in kind.endings]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def files(path: str | os.PathLike[str], kinds: Sequence[FileKind]) -> list[tuple[Path, FileKind]]:
    """The files that a path means, sorted by name: a file; all below a folder; or those that match ``*``, ``?``, ``[...]`` and ``**``.

    Of a folder and of ``**`` those whose own name, or a folder's on the way, begins with a point or an underscore are left out, as engines
    write marks of their own under such names.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"the source must be a path to {endings(kinds)} files; got an object of type {type(path).__name__!r}.")
    root = Path(os.fsdecode(path))
    if root.is_dir():
        matched = [file for file in sorted(root.rglob("*")) if file.is_file() and not _hidden(file.relative_to(root))]
        what = message("The folder {path!r}", path=str(root))
    elif glob.has_magic(str(root)) and not root.is_file():
        matches = (Path(name) for name in sorted(glob.glob(str(root), recursive=True)))  # noqa: PTH207 - the pattern may be absolute
        matched = [file for file in matches if file.is_file() and not ("**" in root.parts and _hidden(file))]
        what = message("The pattern {path!r}", path=str(root))
    else:
        return [(root, _kind(root, kinds))]
    if not matched:
        raise InputError(message("the source must be files that exist. {what} has none.", what=what))
    pairs = [(file, _kind(file, kinds)) for file in matched]
    names = [kind.name for kind in kinds if any(kind is other for _, other in pairs)]
    if len(names) > 1:
        both = " and ".join(names)
        raise InputError(f"the files of a source must be of one kind. {what} has both {both} files: name one kind, as in '*.csv'.")
    return pairs


def _hidden(file: Path) -> bool:
    return any(part.startswith((".", "_")) and part not in {".", ".."} for part in file.parts)


def _kind(file: Path, kinds: Sequence[FileKind]) -> FileKind:
    kind = next((known for known in kinds if file.name.lower().endswith(known.endings)), None)
    if kind is None:
        raise InputError(message(_OTHER_KIND, endings=endings(kinds), path=str(file)))
    if not file.is_file():
        near = did_you_mean(file.name, [entry.name for entry in file.parent.iterdir()]) if file.parent.is_dir() else ""
        raise InputError(message(_NO_FILE + (" {advice}" if near else ""), path=str(file), advice=near))
    return kind
