"""How long a test waits for another process before it says that the process hangs. No assertion depends on how fast the machine is."""

HANGS = 900.0
