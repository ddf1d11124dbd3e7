"""The Responses routes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from puna.api.replies import EventStream, Json
from puna.api.responses.decode import decode_messages, decode_prompt, decode_turn
from puna.api.responses.encode import ResponseEncoder
from puna.api.responses.schema import InputTokensRequest, ResponsesRequest
from puna.api.responses.store import ResponseStore
from puna.api.route import add_post
from puna.errors import NotFound
from puna.service.chat import Message
from puna.service.chat_run import count_turn, prepare_turn, start_turn
from puna.service.naming import naming
from puna.service.service import Service

MODELS = (ResponsesRequest, InputTokensRequest)


def responses_router(service: Service, store: ResponseStore) -> APIRouter:
    """Routes of OpenAI's newer dialect; replies are kept in `store`."""
    router = APIRouter(tags=["responses"])

    async def create_response(body: ResponsesRequest) -> Response:
        """Answer a conversation, and keep it unless `store` is false."""
        messages = decode_messages(body, store)
        prepared = await prepare_turn(service, decode_turn(service, body, messages))
        run = await start_turn(service, prepared)

        def keep(id: str, reply: bytes, answer: Message) -> None:
            store.put(id, reply, (*messages, answer))

        encoder = ResponseEncoder(body, run, model=body.model or service.model, keep=keep if body.store is not False else None)
        if not body.stream:
            with naming(prepared.constraint_field):
                return Json(await encoder.whole())
        settings = service.settings
        interval = settings.sse_ping_interval if body.sse_ping_interval is None else body.sse_ping_interval
        return EventStream(
            encoder.frames(),
            run.aclose,
            ping_after=settings.sse_ping_after,
            ping_interval=interval,
            encode_error=encoder.failed,
        )

    async def count_input_tokens(body: InputTokensRequest) -> Response:
        """Count the tokens of a conversation."""
        n_tokens = await count_turn(service, decode_prompt(service, body, decode_messages(body, store)))
        return Json({"object": "response.input_tokens", "input_tokens": n_tokens})

    add_post(router, service, ("/v1/responses", "/responses"), ResponsesRequest, create_response)
    add_post(router, service, ("/v1/responses/input_tokens", "/responses/input_tokens"), InputTokensRequest, count_input_tokens)

    @router.get("/v1/responses/{id}", response_model=None)
    async def retrieve_response(id: str) -> Response:
        """A reply that was kept."""
        kept = store.get(id)
        if kept is None:
            raise NotFound(f"Response with id {id[:100]!r} not found")
        return Json(kept.reply)

    @router.delete("/v1/responses/{id}", response_model=None)
    async def delete_response(id: str) -> Response:
        """Forget a reply."""
        if not store.delete(id):
            raise NotFound(f"Response with id {id[:100]!r} not found")
        return Json({"id": id, "object": "response", "deleted": True})

    return router
