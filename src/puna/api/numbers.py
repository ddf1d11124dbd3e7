"""Numbers as they may appear in requests: finite, and within what the engine's C types can hold."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

INT32_MAX = 2**31 - 1
FLOAT32_MAX = 3.4e38


def _whole(value: Any) -> Any:
    """JSON knows one kind of number: 40.0 is as much a whole number as 40."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


Whole = Annotated[int, BeforeValidator(_whole, json_schema_input_type=int)]
Int = Annotated[Whole, Field(ge=-INT32_MAX - 1, le=INT32_MAX)]
Count = Annotated[Whole, Field(ge=0, le=INT32_MAX)]
CountOrAll = Annotated[Whole, Field(ge=-1, le=INT32_MAX)]
"""-1 has a meaning of its own."""
Number = Annotated[float, Field(ge=-FLOAT32_MAX, le=FLOAT32_MAX, allow_inf_nan=False)]
Modest = Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]
"""Beyond this a penalty or a rate has no meaning, and arithmetic on logits could overflow."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
