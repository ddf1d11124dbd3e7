"""Options of drafts."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.values import Integer, Number, Switch, choice
from puna.speculation import ALIASES

DRAFTS = "Drafts"

DRAFT_OPTIONS = (
    Option(
        flags=("--spec-type",),
        kind=choice("none", "auto", "ngram-simple", "ngram-map", "ngram-cache", **ALIASES),
        target="server.spec_type",
        variables=("LLAMA_ARG_SPEC_TYPE",),
        group=DRAFTS,
        help="guess tokens ahead and verify several in one step: from the text so far, searched (simple) or indexed (map), and "
        "from other requests too (cache)",
    ),
    Option(
        flags=("--draft-max", "--spec-draft-n-max", "--draft", "--draft-n"),
        kind=Integer(0, 1024),
        target="server.draft_max",
        variables=("LLAMA_ARG_SPEC_DRAFT_N_MAX", "LLAMA_ARG_DRAFT_MAX"),
        group=DRAFTS,
        help="most tokens of a draft; 0: no drafts",
    ),
    Option(
        flags=("--draft-min", "--spec-draft-n-min", "--draft-n-min"),
        kind=Integer(0, 1024),
        target="server.draft_min",
        variables=("LLAMA_ARG_SPEC_DRAFT_N_MIN", "LLAMA_ARG_DRAFT_MIN"),
        group=DRAFTS,
        help="drafts of fewer tokens are not used",
    ),
    Option(
        flags=("--draft-p-min", "--spec-draft-p-min"),
        kind=Number(0, 1),
        target="server.draft_p_min",
        variables=("LLAMA_ARG_SPEC_DRAFT_P_MIN", "LLAMA_ARG_DRAFT_P_MIN"),
        group=DRAFTS,
        help="least chance, as far as can be told, that a drafted token is right",
    ),
    Option(
        flags=("--draft-adaptive",),
        off_flags=("--no-draft-adaptive",),
        kind=Switch(),
        target="engine.draft_adaptive",
        group=DRAFTS,
        help="make drafts only as long as they pay, by what was right before and what steps take; off: as long as they may be",
    ),
)
