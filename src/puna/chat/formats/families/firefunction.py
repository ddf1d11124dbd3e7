"""FireFunction 2.

I look it up. functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from __future__ import annotations

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.description import Calls, Description

FIREFUNCTION = Description(
    name="firefunction",
    calls=Calls(body=Envelope(), begin=" functools[", end="]", between=", ", word=True),
)
