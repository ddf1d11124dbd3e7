"""Tiny random-weight models: GGUF files that load and decode in milliseconds and say nonsense, always the same for a seed."""

from tests.tiny.attention import write_gemma3, write_llama, write_qwen2vl
from tests.tiny.encoder import write_bert
from tests.tiny.hybrid import write_granite_hybrid, write_jamba, write_lfm2
from tests.tiny.lora import write_control_vector, write_lora
from tests.tiny.projector import write_projector
from tests.tiny.recurrent import write_mamba
from tests.tiny.rwkv import write_rwkv6, write_rwkv7
from tests.tiny.vocab import CHATML, Vocab, bpe_vocab, spm_vocab, wpm_vocab

__all__ = [
    "CHATML",
    "Vocab",
    "bpe_vocab",
    "spm_vocab",
    "wpm_vocab",
    "write_bert",
    "write_control_vector",
    "write_gemma3",
    "write_granite_hybrid",
    "write_jamba",
    "write_lfm2",
    "write_llama",
    "write_lora",
    "write_mamba",
    "write_projector",
    "write_qwen2vl",
    "write_rwkv6",
    "write_rwkv7",
]
