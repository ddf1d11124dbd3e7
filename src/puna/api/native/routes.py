"""The native routes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from puna.api.decode import naming
from puna.api.messages import ApplyTemplateRequest, decode_conversation
from puna.api.native.decode import decode_completion, decode_prompts
from puna.api.native.encode import CompletionEncoder
from puna.api.native.info import props_object, slots_list
from puna.api.native.schema import CompletionRequest, DetokenizeRequest, TokenizeRequest
from puna.api.native.tokens import detokenize as detokenize_body
from puna.api.native.tokens import tokenize as tokenize_body
from puna.api.replies import Json
from puna.api.route import add_post, event_stream, start
from puna.errors import NotSupported, Unavailable
from puna.service.answers import collect
from puna.service.service import Service

MODELS = (CompletionRequest, TokenizeRequest, DetokenizeRequest, ApplyTemplateRequest)


def native_router(service: Service) -> APIRouter:
    """Routes under llama.cpp's own names."""
    router = APIRouter(tags=["native"])

    async def completion(body: CompletionRequest) -> Response:
        """Continue one or more prompts."""
        decoded = decode_completion(service, body)
        prompts = await decode_prompts(service, body)
        stream = body.stream is True
        every_token = stream and (decoded.params.sampling.n_probs > 0 or bool(body.return_tokens or body.timings_per_token))
        encoder = CompletionEncoder(body, model=service.model, tokenizer=service.tokenizer)
        running = await start(service, prompts, decoded, every_token=every_token)
        if stream:
            return event_stream(service, body, running, encoder.frames(running))
        with naming(decoded.constraint_field):
            return Json(encoder.whole(await collect(running)))

    async def tokenize(body: TokenizeRequest) -> Response:
        """Make text into token ids."""
        return Json(await tokenize_body(service.tokenizer, body))

    async def detokenize(body: DetokenizeRequest) -> Response:
        """Make token ids into text."""
        return Json(await detokenize_body(service.tokenizer, body))

    async def apply_template(body: ApplyTemplateRequest) -> Response:
        """Show the prompt that a chat would be given to the model as."""
        rendered = await service.chat.render(decode_conversation(body))
        return Json({"prompt": rendered.text})

    add_post(router, service, ("/completion", "/completions"), CompletionRequest, completion)
    add_post(router, service, ("/tokenize",), TokenizeRequest, tokenize)
    add_post(router, service, ("/detokenize",), DetokenizeRequest, detokenize)
    add_post(router, service, ("/apply-template",), ApplyTemplateRequest, apply_template)

    @router.get("/props", response_model=None)
    async def props() -> Response:
        """Facts about the model and the server, and what requests get that name nothing."""
        return Json(props_object(service))

    @router.get("/slots", response_model=None)
    async def slots(request: Request) -> Response:
        """What every slot is doing. With `fail_on_no_slot` a 503 if none is free."""
        service.check_ready()
        if not service.settings.slots_endpoint:
            raise NotSupported("this server does not show its slots; start it with --slots")
        if request.query_params.get("fail_on_no_slot") and all(slot.busy for slot in service.engine.slots):
            raise Unavailable("no slot available")
        return Json(slots_list(service))

    return router
