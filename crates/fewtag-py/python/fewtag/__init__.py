"""Few-shot sequence labelling: a handful of labelled sentences in, tagged text out, no training.

>>> import fewtag
>>> music = fewtag.adapt(["play [nina simone](artist)", "put on some [jazz](genre)"])
>>> found = music("could you play billie holiday")
>>> [(span.label, span.text) for span in found.spans]
[('artist', 'billie holiday')]
"""

import os as _os

from . import _fewtag
from ._answer import Answer, Explanation, Explanations, Span, Voice
from ._domain import Domain, adapt, open
from ._fewtag import (
    DomainError,
    ExamplesError,
    FewtagError,
    ModelError,
    TextError,
    __version__,
    set_threads,
    threads,
)
from ._report import Finding, LabelReport, Report, Suggestion
from ._tuning import Tuning

__all__ = [
    "Answer",
    "Domain",
    "DomainError",
    "ExamplesError",
    "Explanation",
    "Explanations",
    "FewtagError",
    "Finding",
    "LabelReport",
    "ModelError",
    "Report",
    "Span",
    "Suggestion",
    "TextError",
    "Tuning",
    "Voice",
    "__version__",
    "adapt",
    "open",
    "set_threads",
    "threads",
]

if hasattr(_os, "register_at_fork"):
    # A child has none of our threads; this makes sure that none of them holds a lock which the child would wait for.
    _os.register_at_fork(before=_fewtag.before_fork)
