"""Checks of answers of the studio's server."""


def is_empty_refusal(answer):
    """Tell whether an answer refuses the request and says nothing else."""
    status, headers, content = answer
    tells_something = content != b"" or "set-cookie" in headers or "server" in headers
    return status == 403 and not tells_something
