"""How far a long run has come: a bar in a notebook, a line on a terminal."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any


def _notebook() -> bool:
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return type(running).__name__ == "ZMQInteractiveShell"


class Progress:
    """Counts texts, or another unit. Wanted: True, False, or None for "in a notebook, if there are many"."""

    def __init__(self, wanted: bool | None, total: int | None, unit: str = "texts") -> None:
        self._total, self._done, self._next, self._unit = total, 0, 0.0, unit
        in_notebook = _notebook()
        self._on = wanted if wanted is not None else in_notebook and (total or 0) >= 1000
        self._handle: Any = None
        if self._on and in_notebook:
            self._display: Any = importlib.import_module("IPython.display")
            self._handle = self._display.display(self._display.HTML(self._bar()), display_id=True)

    def _bar(self) -> str:
        most = f' max="{self._total}"' if self._total else ""
        return f'<progress value="{self._done}"{most}></progress> {self._text()}'

    def _text(self) -> str:
        return f"{self._done:,}" + (f" of {self._total:,} {self._unit}" if self._total else f" {self._unit}")

    def add(self, n: int) -> None:
        """So many more are done."""
        self._done += n
        if self._on and time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.2
            self._show()

    def _show(self) -> None:
        if self._handle is not None:
            self._handle.update(self._display.HTML(self._bar()))
        else:
            print(f"\r{self._text()}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """All is done."""
        if self._on:
            self._show()
            if self._handle is None:
                print(file=sys.stderr)
