"""The native routes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from puna.api.body import read
from puna.api.decode import Decoded
from puna.api.disconnect import unless_disconnected
from puna.api.fields import GenerationFields
from puna.api.lora import decode_lora
from puna.api.messages import ApplyTemplateRequest, decode_conversation, decode_tool_choice
from puna.api.native.adapters import adapters_list
from puna.api.native.decode import decode_completion, decode_gap, decode_prompts
from puna.api.native.encode import CompletionEncoder
from puna.api.native.info import props_object, slots_list
from puna.api.native.schema import (
    CompletionRequest,
    DetokenizeRequest,
    InfillRequest,
    LoraAdaptersRequest,
    SlotFileRequest,
    TokenizeRequest,
)
from puna.api.native.slots import act
from puna.api.native.tokens import detokenize as detokenize_body
from puna.api.native.tokens import tokenize as tokenize_body
from puna.api.openapi import request_body
from puna.api.reasoning import decode_reasoning
from puna.api.replies import Json
from puna.api.route import add_post, reply, start
from puna.errors import NotSupported, Unavailable
from puna.service.chat_run import render_turn
from puna.service.chat_turn import ChatTurn
from puna.service.infill import check_fim, fill_prompt
from puna.service.params import GenerationParams
from puna.service.preserved import preserving
from puna.service.service import Service
from puna.service.turns import Turn
from puna.service.written import ReadPrompt

MODELS = (
    *(CompletionRequest, InfillRequest, TokenizeRequest, DetokenizeRequest),
    *(ApplyTemplateRequest, LoraAdaptersRequest, SlotFileRequest),
)


def native_router(service: Service) -> APIRouter:
    """Routes under llama.cpp's own names."""
    router = APIRouter(tags=["native"])

    async def completion(body: CompletionRequest) -> Response:
        """Continue one or more prompts."""
        decoded = decode_completion(service, body)
        prompts = await decode_prompts(service, body)
        return await answer(body, prompts, decoded)

    async def infill(body: InfillRequest) -> Response:
        """Fill the gap between two texts. A newer request with the same `id_slot` ends this one."""
        decoded, gap = decode_completion(service, body), decode_gap(body)
        check_fim(service.tokenizer)
        turn = None if body.id_slot is None or body.id_slot < 0 else await service.turns.take(body.id_slot)
        facts = service.facts
        prompt = await fill_prompt(service.tokenizer, gap, n_ctx=facts.n_ctx, n_batch=facts.n_batch)
        return await answer(body, [ReadPrompt(prompt)], decoded, turn)

    async def answer(body: GenerationFields, prompts: list[ReadPrompt], decoded: Decoded, turn: Turn | None = None) -> Response:
        encoder = CompletionEncoder(
            body, model=service.model, tokenizer=preserving(service.tokenizer, decoded.params.preserved_tokens)
        )
        running = await start(service, body, prompts, decoded, turn=turn)
        return await reply(service, body, decoded, running, encoder)

    async def tokenize(body: TokenizeRequest) -> Response:
        """Make text into token ids."""
        return Json(await tokenize_body(service.tokenizer, body))

    async def detokenize(body: DetokenizeRequest) -> Response:
        """Make token ids into text."""
        return Json(await detokenize_body(service.tokenizer, body))

    async def apply_template(body: ApplyTemplateRequest) -> Response:
        """Show the prompt that a chat would be given to the model as."""
        turn = ChatTurn(
            conversation=decode_conversation(body),
            choice=decode_tool_choice(body),
            reasoning=decode_reasoning(body, service.settings),
            params=GenerationParams(),
        )
        turn.choice.among(turn.conversation.tools)
        written = await render_turn(service, turn, load=False)
        return Json({"prompt": written.text})

    async def set_lora_adapters(body: LoraAdaptersRequest) -> Response:
        """Set the scale of every adapter for requests that name none; those that are left out get 0."""
        service.adapters.set(decode_lora(body.root, service.adapters))
        return Json({"success": True})

    add_post(router, service, ("/completion", "/completions"), CompletionRequest, completion)
    add_post(router, service, ("/infill",), InfillRequest, infill)
    add_post(router, service, ("/tokenize",), TokenizeRequest, tokenize)
    add_post(router, service, ("/detokenize",), DetokenizeRequest, detokenize)
    add_post(router, service, ("/apply-template",), ApplyTemplateRequest, apply_template)

    add_post(router, service, ("/lora-adapters",), LoraAdaptersRequest, set_lora_adapters)

    @router.get("/lora-adapters", response_model=None)
    async def lora_adapters() -> Response:
        """The loaded LoRA adapters, and how strongly each counts for requests that name none."""
        return Json(adapters_list(service))

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

    @router.post("/slots/{id_slot}", response_model=None, openapi_extra=request_body(SlotFileRequest, required=False))
    async def act_on_slot(request: Request, id_slot: str, action: str | None = None) -> Response:
        """Save what a slot last held to a file (`action=save`), restore it from there (`restore`), or erase it (`erase`)."""
        service.check_ready()
        raw = await read(request, service.settings.max_body)
        return Json(await unless_disconnected(request.receive, act(service, id_slot, action, raw)))

    return router
