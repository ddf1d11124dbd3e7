"""What the model says: scenes that a user's message asks for by name, played exactly."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from puna.errors import ContextExceeded, ServerFault
from puna.types import Chunk, Generation
from tests.fakes import FACTS, FakeEngine, FakeStream, Item, say
from tests.unit.api.test_anthropic import TEMPLATE

N_CTX = 65536
BROKEN = ServerFault("the engine broke")


def call(name: str, arguments: str) -> str:
    """A call as the model writes it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


ROME, OSLO = call("weather", '{"city": "Rome"}'), call("weather", '{"city": "Oslo"}')
CITY = '{"city":"Rome","degrees":21}'

SAID: dict[str, tuple[str, ...]] = {
    "plain": ("Hello", " world"),
    "think": ("<think>\nlet me", " see\n</think>\n\n", "Done", "."),
    "one call": ("I look. ", ROME[:20], ROME[20:35], ROME[35:]),
    "only call": (ROME,),
    "two calls": (ROME, "\n", OSLO),
    "call then answer": (ROME,),
    "final result": (call("final_result", CITY),),
    "city call": (call("City", CITY),),
    "json call": (call("json", CITY),),
    "city": (CITY[:9], CITY[9:]),
    "fenced": ("```json\n", CITY, "\n```"),
}
"""Scene by scene, the pieces of the answer."""

ANSWER = ("It is sunny", " in Rome.")
"""What is said once a tool's result is the last word."""


def play(scene: str) -> Iterable[Item]:
    """The script of a scene."""
    if scene == "fail":
        return [*(Chunk(text=text, tokens=tuple(text.encode()), slot=0) for text in ("It ", "was")), 0.02, BROKEN]
    if scene == "long":
        return say(*["word "] * 500, pause=0.02)
    if scene == "cut":
        return say("So long", stop_type="limit")
    return say(*SAID[scene])


@dataclass
class Stage(FakeEngine):
    """An engine that plays the scene that the last message asks for with `play: NAME`."""

    scenes: dict[str, list[FakeStream]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.facts = msgspec.structs.replace(
            FACTS, chat_template=TEMPLATE, n_ctx=N_CTX, n_ctx_train=N_CTX, pooling="mean", n_embd_out=4, n_ctx_pooled=512
        )

    def generate(self, generation: Generation, *, every_token: bool = False) -> FakeStream:
        prompt = self.tokenizer.detokenize(generation.prompt)
        asked = re.findall(r"play: ([a-z ]+)", prompt)
        scene = asked[-1].strip() if asked else "plain"
        if scene == "overflow":
            raise ContextExceeded(99999, N_CTX)
        ended = prompt.rfind("<|im_start|>tool") > prompt.rfind("play: ")
        stream = FakeStream(generation, say(*ANSWER) if ended else play(scene))
        self.streams.append(stream)
        self.every_token.append(every_token)
        self.scenes.setdefault(scene, []).append(stream)
        return stream

    def prompt(self) -> str:
        """The last prompt."""
        return self.tokenizer.detokenize(self.last.prompt)
