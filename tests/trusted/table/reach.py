"""Objects that can be reached from an object."""

import gc
import types

_ENDS = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
)


def reachable(start):
    """Yield all that the garbage collector follows, without modules, classes, functions."""
    visited = {id(start)}
    waiting = [start]
    while waiting:
        value = waiting.pop()
        yield value
        for referent in gc.get_referents(value):
            if id(referent) not in visited and not isinstance(referent, _ENDS):
                visited.add(id(referent))
                waiting.append(referent)
