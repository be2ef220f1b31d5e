"""What `make docs` does to pages: links to repository files lead there, and nothing is fetched when viewed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).resolve().parents[1] / "docs"
_REPOSITORY = "https://github.com/veilmeter/veilmeter/blob/main"
_LINK = re.compile(r"\]\((\.\.?/[^)\s#]+)")

# The theme's own aid for searching in a page that was opened as a file; the search then needs `python -m http.server`.
_ELSEWHERE = re.compile(r'<script[^>]*\bsrc="?https?://[^>]*></script>')


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A link to a file outside of docs/ leads to the repository, if the file is there; mkdocs reports it otherwise."""

    def lead(link: re.Match[str]) -> str:
        target = (_DOCS / page.file.src_uri).parent.joinpath(link[1]).resolve()
        if target.is_relative_to(_DOCS) or not target.exists():
            return link[0]
        return f"]({_REPOSITORY}/{target.relative_to(_DOCS.parent).as_posix()}"

    return _LINK.sub(lead, markdown)


def on_post_page(output: str, **_: Any) -> str:
    return _ELSEWHERE.sub("", output)


def on_post_template(output_content: str, **_: Any) -> str:
    """The page for addresses that do not exist."""
    return _ELSEWHERE.sub("", output_content)
