"""Llama 3.1, 3.2 and 3.3: an object that is all of the answer, or a call of a built-in tool.

{"name": "get_weather", "parameters": {"city": "Paris"}}
<|python_tag|>brave_search.call(query="weather in Paris")

The tag may precede an object too.
"""

from __future__ import annotations

from puna.chat.formats.bodies.either import Either
from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.bodies.pythonic import Pythonic
from puna.chat.formats.description import Calls, Description

_OBJECT = Envelope(arguments="parameters", known=True)
_BUILT_IN = Pythonic(suffix=".call", known=True)

LLAMA3 = Description(
    name="llama3",
    calls=Calls(body=Either(_OBJECT, _BUILT_IN, written=_OBJECT), bare=True, between="; ", parallel=False, trigger='{"name": "'),
    dropped=("<|python_tag|>",),
)
