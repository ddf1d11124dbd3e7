"""Random bodies of random fields: nothing but 200, 400 and 501 comes back, and everybody lives."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.e2e.checks import is_sound
from tests.e2e.dialects import DIALECTS
from tests.e2e.server import Server

_FIELDS = """
prompt messages n_predict max_tokens max_completion_tokens min_tokens n_cmpl n best_of temperature dynatemp_range
dynatemp_exponent top_k top_p min_p typical_p top_n_sigma xtc_probability xtc_threshold repeat_last_n penalty_last_n
repeat_penalty presence_penalty frequency_penalty dry_multiplier dry_base dry_allowed_length dry_penalty_last_n
dry_sequence_breakers mirostat mirostat_mode mirostat_tau mirostat_eta adaptive_target adaptive_decay samplers seed
logit_bias logit_bias_type ignore_eos stop stop_sequences n_probs logprobs top_logprobs post_sampling_probs min_keep grammar
json_schema response_format grammar_lazy grammar_triggers preserved_tokens regex choice lark deterministic cache_prompt
n_cache_reuse id_slot n_keep n_discard n_indent t_max_predict_ms return_tokens timings_per_token return_progress
response_fields verbose lora speculative reasoning_format chat_template_kwargs reasoning_effort tools tool_choice functions
function_call stream stream_options echo suffix model user add_generation_prompt continue_final_message template
"""
FIELDS = _FIELDS.split()

PLAUSIBLE: list[Any] = [
    None, True, False, 0, 1, 2, 3, 5, 0.25, 0.5, 1.5, -1, "x", "auto", "none", "text", "medium", "kpt", [1, 2], ["a", "b"],
    "root ::= [a-z]+", "abc{2,3}", {"type": "json_object"}, [["a", 5]], {"5": 3}, [["x", False]], ["penalties", "temperature"],
    {"include_usage": True}, [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
]  # fmt: skip

HOSTILE: list[Any] = [
    -0.5, 1e9, 2**31, 2**63, 2**64, 10**30, 1e308, "", "\x00", "😀", "a" * 300, [], [[]], [None], [-1], [""], [[1, 2]],
    [[1, "x"]], [{}], {}, {"x": 1}, {"1": 1}, {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
    {"type": "function", "function": {"name": "f"}}, [{"type": "function", "function": {"name": "f"}}],
    [{"id": 0, "scale": 1}], [{"type": "word", "value": "x"}], {"prompt_string": "x", "multimodal_data": []},
]  # fmt: skip

OTHER_ROUTES = {
    "/tokenize": ("content", "add_special", "parse_special", "with_pieces"),
    "/detokenize": ("tokens",),
    "/apply-template": ("messages", "chat_template_kwargs", "add_generation_prompt", "tools", "tool_choice", "template"),
}


@pytest.mark.parametrize("values", [PLAUSIBLE, PLAUSIBLE + HOSTILE], ids=["plausible", "hostile"])
def test_random_generation_requests(tiny_server: Server, values: list[Any]) -> None:
    chance = random.Random(len(values))
    for _ in range(300):
        dialect = chance.choice(DIALECTS)
        body = dialect.body("x", limit=3, stream=chance.random() < 0.2)
        for _ in range(chance.choice([1, 1, 1, 2, 3, 5])):
            body[chance.choice(FIELDS)] = chance.choice(values)
        reply = tiny_server.post(dialect.path, body, timeout=10)
        if reply.headers["content-type"].startswith("text/event-stream"):
            assert reply.status_code == 200 and '"error"' not in reply.text, (body, reply.text)
        else:
            assert is_sound(reply, statuses=(200, 400, 501)), body
    tiny_server.assert_alive()


def test_random_requests_to_the_other_routes(tiny_server: Server) -> None:
    chance = random.Random(7)
    for _ in range(200):
        path, fields = chance.choice(list(OTHER_ROUTES.items()))
        body = {field: chance.choice(PLAUSIBLE + HOSTILE) for field in fields if chance.random() < 0.6}
        assert is_sound(tiny_server.post(path, body, timeout=10), statuses=(200, 400, 501)), body
    tiny_server.assert_alive()
