"""The three text routes, told apart by how a prompt goes in and how text and reason come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e.server import Server
from tests.e2e.sse import DONE, Frame, join_text


@dataclass(frozen=True)
class Answer:
    """What a client makes of a reply, streamed or not."""

    text: str
    finish: str
    usage: tuple[int, int] | None
    """Prompt and completion tokens."""
    stopping_word: str | None = None


@dataclass(frozen=True)
class Dialect:
    """One route that generates text."""

    name: str
    path: str
    limit: str
    """The field that limits the answer's length."""

    def body(self, prompt: str, **fields: Any) -> dict[str, Any]:
        """A request for `prompt`; a `limit` field goes in under the dialect's own name."""
        if "limit" in fields:
            fields[self.limit] = fields.pop("limit")
        if self.name == "chat":
            return {"messages": [{"role": "user", "content": prompt}], **fields}
        return {"prompt": prompt, **fields}

    def ask(self, server: Server, prompt: str, *, stream: bool, **fields: Any) -> Answer:
        """The whole answer, both ways of asking brought to one form."""
        body = self.body(prompt, **fields)
        if not stream:
            return self.read(server.json(self.path, body))
        if self.name != "native":
            body["stream_options"] = {"include_usage": True}
        return self.read_stream(server.frames(self.path, body))

    def read(self, reply: Any) -> Answer:
        if self.name == "native":
            usage = (reply["tokens_evaluated"], reply["tokens_predicted"])
            return Answer(reply["content"], reply["stop_type"], usage, reply["stopping_word"])
        (choice,) = reply["choices"]
        text = choice["text"] if self.name == "completions" else choice["message"]["content"]
        return Answer(text or "", choice["finish_reason"], _usage(reply["usage"]))

    def read_stream(self, frames: list[Frame]) -> Answer:
        text = join_text(frames)
        if self.name == "native":
            last = frames[-1]
            assert last["stop"] is True and all(frame["stop"] is False for frame in frames[:-1])
            return Answer(text, last["stop_type"], (last["tokens_evaluated"], last["tokens_predicted"]), last["stopping_word"])
        assert frames[-1] is DONE
        reasons = [choice["finish_reason"] for frame in frames[:-1] for choice in frame["choices"]]
        assert reasons[-1] is not None and not any(reasons[:-1])
        last = frames[-2]
        return Answer(text, reasons[-1], _usage(last["usage"]) if last["choices"] == [] else None)


NATIVE = Dialect("native", "/completion", "n_predict")
COMPLETIONS = Dialect("completions", "/v1/completions", "max_tokens")
CHAT = Dialect("chat", "/v1/chat/completions", "max_tokens")
DIALECTS = (NATIVE, COMPLETIONS, CHAT)


def forced(text: str) -> str:
    """A grammar whose only sentence is `text`."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return 'root ::= "' + "".join(escapes.get(c, c) for c in text) + '"'


def _usage(usage: dict[str, Any]) -> tuple[int, int]:
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    return usage["prompt_tokens"], usage["completion_tokens"]
