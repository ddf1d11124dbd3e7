"""JSON Schema made into what the constraint engine enforces as it stands, with a list of what it cannot."""

from __future__ import annotations

import math
from typing import Any

from puna.grammar.schema import applicators, arrays, objects, scalars
from puna.grammar.schema.cost import check_cost
from puna.grammar.schema.document import Impossible, SchemaError, TooCostly
from puna.grammar.schema.finite import prune
from puna.grammar.schema.limits import check_limits
from puna.grammar.schema.rewrite import Checks, Effort, Handler, Loss, Rewriter

__all__ = ["Checks", "Effort", "Impossible", "Loss", "SchemaError", "TooCostly", "rewrite_schema"]

_HANDLERS: dict[str, Handler] = {**scalars.HANDLERS, **arrays.HANDLERS, **objects.HANDLERS, **applicators.HANDLERS}


def rewrite_schema(
    schema: Any, checks: Checks, *, effort: Effort = Effort.ALL, deadline: float = math.inf
) -> tuple[dict[str, Any], list[Loss]]:
    """The schema for the engine, and the keywords that it does not enforce. Raises `SchemaError`.

    `deadline` is a time of this thread's processor clock.
    """
    check_limits(schema)
    rewriter = Rewriter(schema, _HANDLERS, checks, effort, deadline)
    made = rewriter.run()
    prune(made)
    check_cost(made)
    return made, list(rewriter.losses)
