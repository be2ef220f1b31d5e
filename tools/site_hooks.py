"""What `make docs` does to every page: nothing is fetched from elsewhere when it is viewed."""

from __future__ import annotations

import re
from typing import Any

# The theme's own aid for searching in a page that was opened as a file; the search then needs `python -m http.server`.
_ELSEWHERE = re.compile(r'<script[^>]*\bsrc="?https?://[^>]*></script>')


def on_post_page(output: str, **_: Any) -> str:
    return _ELSEWHERE.sub("", output)


def on_post_template(output_content: str, **_: Any) -> str:
    """The page for addresses that do not exist."""
    return _ELSEWHERE.sub("", output_content)
