#!/usr/bin/env python3
"""Checks every relative link and anchor of the repository's Markdown files. It needs no network.

    python3 scripts/check_links.py

A link must lead to a tracked file or folder inside the repository; an anchor to a heading of that file, by GitHub's rule.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
LINKS = [
    re.compile(r"\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)"),  # [text](target "title")
    re.compile(r"^\s*\[[^\]]+\]:\s*<?([^>\s]+)", re.MULTILINE),  # [name]: target
    re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\""),
]
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")  # https:, mailto:


def tracked(*patterns: str) -> list[Path]:
    """Tracked files and new ones that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).exists()]


def without_code(text: str) -> str:
    """Blanks fenced blocks and code spans, keeping the line numbers."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"^( *)(```+|~~~+).*?^ *\2[ \t]*$", blank, text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", blank, text)


def slug(heading: str) -> str:
    """GitHub's anchor: lower case, punctuation dropped, blanks to hyphens."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    unfenced = re.sub(r"^( *)(```+|~~~+).*?^ *\2[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    found, seen = set(), {}
    for heading in re.findall(r"^ {0,3}#{1,6}\s+(.+?)\s*#*\s*$", unfenced, flags=re.MULTILINE):
        name = slug(heading)
        repeated = seen.get(name, 0)
        seen[name] = repeated + 1
        found.add(f"{name}-{repeated}" if repeated else name)
    return found | set(re.findall(r"<a\s[^>]*?(?:id|name)=\"([^\"]+)\"", unfenced))


def problem(page: Path, target: str, known: set[Path]) -> str | None:
    """Why `target` on `page` leads nowhere."""
    file, _, anchor = unquote(target).partition("#")
    path = (page.parent / file).resolve() if file else page
    if not path.is_relative_to(ROOT):
        return "leads out of the repository"
    if path not in known:
        return "is not a file or folder of the repository"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return "names no heading"
    return None


def main() -> int:
    files = tracked()
    known = {ROOT, *files, *(parent for file in files for parent in file.parents)}
    n_links, errors = 0, []
    for page in tracked("*.md"):
        text = without_code(page.read_text(encoding="utf-8"))
        for match in (match for link in LINKS for match in link.finditer(text)):
            target = match.group(1)
            if ELSEWHERE.match(target):
                continue
            n_links += 1
            if reason := problem(page, target, known):
                line = text.count("\n", 0, match.start(1)) + 1
                errors.append(f"{page.relative_to(ROOT)}:{line}: `{target}` {reason}")
    print("\n".join([*errors, f"{n_links} links checked, {len(errors)} broken"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
