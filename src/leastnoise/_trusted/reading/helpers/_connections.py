"""Explain why a connection to PostgreSQL failed.

This file is not trusted, because it only chooses among fixed sentences. These sentences may name
parts of the URL, but never the password. They never quote the server's text, which may contain a
query or a row.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from leastnoise._trusted.check import InputError, message

SCHEMES = ("postgresql", "postgres", "duckdb")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PLAIN = re.compile(r"[\w.:/\-]{1,200}")
_DEFAULT_PORT = "5432"
_OTHER_SCHEME = (
    "The environment variable {name} must hold a URL that begins with postgresql:// or duckdb://; "
    "its scheme is {scheme}. Write for example postgresql://user@host:5432/name."
)
# For each pattern in the text of an error: the wrong part of the URL, and the advice.
_CAUSES = (
    (r"could not translate host name", "host", "No machine of this name is known."),
    (r"invalid (?:integer value|port)", "port", "It must be a whole number, such as 5432."),
    (r"Connection refused", "port", "The host answers, but no server listens at this port."),
    (
        r"timeout expired|timed out|No route to host|Network is unreachable",
        "host",
        "It does not answer. Check its name, and check whether a firewall blocks the connection.",
    ),
    (
        r'FATAL:  role "[^"]*" (?:does not exist|is not permitted)',
        "role",
        "The server does not know the role, or the role may not log in.",
    ),
    (
        r"password authentication failed|no password supplied",
        "role",
        "The server refuses the role with this password.",
    ),
    (
        r"no pg_hba\.conf entry",
        "role",
        (
            "The server lets the role in to this database only from another machine, or with "
            "another encryption."
        ),
    ),
    (
        r'FATAL:  database "[^"]*" does not exist',
        "database",
        "The server has no database of this name.",
    ),
    (
        r'permission denied for database "',
        "database",
        "The role may not connect to it.",
    ),
    (r"invalid URI query parameter", "query", "PostgreSQL knows no such parameter."),
    (r"SSL", "sslmode", "Server and URL do not agree on encryption."),
)


@dataclass(frozen=True, slots=True)
class _Address:
    """The parts of a URL that can be identified with certainty."""

    host: str | None = None
    port: str | None = None
    role: str | None = None
    database: str | None = None

    @classmethod
    def of(cls, url: str) -> "_Address":
        """Parse the parts of a PostgreSQL URL; return no parts if they are uncertain.

        If a password has an unescaped character, a part of it could be mistaken for another part of
        the URL. If such a mistake is possible, all parts are None.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return cls()
        if "@" in parts.path + parts.query + parts.fragment or parts.netloc.count("@") > 1:
            return cls()
        settings = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return cls(
            host=settings.get("host") or parts.hostname or "localhost",
            port=settings.get("port") or (_DEFAULT_PORT if port is None else str(port)),
            role=settings.get("user") or (parts.username and unquote(parts.username)),
            database=settings.get("dbname") or unquote(parts.path.removeprefix("/")) or None,
        )

    def describe(self, part: str) -> str:
        """Return the name of a URL part, with its value if that is no password."""
        value = getattr(self, part, None)
        if value is None or not _PLAIN.fullmatch(value):
            return f"the {part}"
        return f"the {part} {value!r}"


def check_scheme(url: str, name: str) -> None:
    """Raise `InputError` unless a URL begins with one of the `SCHEMES`.

    Args:
        url: the URL.
        name: the environment variable that contains the URL.
    """
    match = _SCHEME.match(url)
    if match is None:
        raise InputError(message(_OTHER_SCHEME, name=name, scheme="missing"))
    if match[1].lower() not in SCHEMES:
        raise InputError(message(_OTHER_SCHEME, name=name, scheme=repr(match[1])))


def explain_failure(url: str, error_text: str) -> str | None:
    """Explain which part of a URL made a connection fail; None if unknown.

    Args:
        url: the URL.
        error_text: the text of the driver's error; messages do not repeat it.

    Returns:
        An explanation of two sentences; None if the cause is not known.

    >>> explain_failure("postgresql://ann@db.example/visits", 'FATAL:  role "ann" does not exist')
    "the role 'ann' of its URL is refused. The server does not know the role, or the role ..."
    """
    address = _Address.of(url)
    for pattern, part, reason in _CAUSES:
        if re.search(pattern, error_text):
            return f"{address.describe(part)} of its URL is refused. {reason}"
    if "No such file or directory" in error_text:  # the host is the folder of a Unix socket
        if address.host is not None and Path(address.host).is_dir():
            part = "port"
        else:
            part = "host"
        return f"{address.describe(part)} of its URL is refused. No server has a socket there."
    return None
