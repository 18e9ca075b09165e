"""Objects that can be reached from an object."""

import gc
import types
from collections.abc import Iterator

_ENDS = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
)


def reachable(start: object) -> Iterator[object]:
    """Yield all that the garbage collector follows, without modules, classes, functions."""
    seen, waiting = {id(start)}, [start]
    while waiting:
        one = waiting.pop()
        yield one
        for found in gc.get_referents(one):
            if id(found) not in seen and not isinstance(found, _ENDS):
                seen.add(id(found))
                waiting.append(found)
