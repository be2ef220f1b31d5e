"""Links of a page: to the web, to a file beside it or to a place on it. None of them ever runs script."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

NOWHERE = "#"


def safe_link(address: str) -> str:
    """The address if it is harmless, else a link to nowhere.

    >>> safe_link("https://example.org/a?b=c"), safe_link("runs/a b/report.html"), safe_link("#people")
    ('https://example.org/a?b=c', 'runs/a%20b/report.html', '#people')
    >>> safe_link("javascript:alert(1)"), safe_link("//elsewhere.example/x"), safe_link("data:text/html,x")
    ('./javascript%3Aalert%281%29', './elsewhere.example/x', './data%3Atext/html%2Cx')
    """
    if address.startswith("#"):
        return "#" + quote(address[1:])
    parts = urlsplit(address)
    if parts.scheme in ("http", "https") and parts.netloc:
        return parts.geturl()
    # Anything else is the path of a file: a folder may be called "javascript:alert(1)".
    path = quote(address.replace("\\", "/").lstrip("/"))
    if not path:
        return NOWHERE
    return path if path == address else f"./{path}" if ":" in address or address.startswith("/") else path
