"""Lock open files, so that one process at a time uses them.

This file is not trusted: locks only decide which process waits. The rows of the ledger ensure that
nothing is drawn twice (PROOFS-ledger.md, theorem 4).
"""


def try_lock(handle: int) -> bool:
    """Try to lock an open file, and return whether that succeeded.

    The system frees the lock when the file is closed or the process ends, for any reason. The
    library locks with ``flock`` on POSIX systems, and with ``msvcrt.locking`` on Windows.

    Args:
        handle: the descriptor of an open file.

    Returns:
        False if another open file has the lock.

    Raises:
        OSError: the file system has no locks.
    """
    import portalocker

    try:
        portalocker.lock(handle, portalocker.LOCK_EX | portalocker.LOCK_NB)
    except portalocker.AlreadyLocked:
        return False
    except portalocker.LockException as error:
        raise OSError("the file system refuses to lock a file") from error
    return True
