"""Small vocabularies of the three kinds the engine knows, each able to spell any text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gguf import GGUFWriter, TokenType

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

CHAT_TOKENS = ("<|im_start|>", "<|im_end|>")
FIM_TOKENS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")

_TEXT = """
the of and to in is it that for was on are as with his they at be this have from or one had by word but not what all
were we when your can said there use an each which she do how their if will up other about out many then them these so
some her would make like him into time has look two more write go see number no way could people my than first water
been call who hello world system user assistant answer question name value true false null red green blue
"""
WORDS = tuple(_TEXT.split())
"""Common words; SPM pieces and BPE merges are grown from them letter by letter."""

ASCII = tuple(chr(c) for c in range(0x21, 0x7F))
CJK = tuple("漢字日本語中文人大小")
SPACE = "\u2581"


@dataclass(frozen=True)
class Vocab:
    """Tokens with what the engine wants to know of them."""

    kind: Literal["llama", "gpt2", "bert"]
    pre: str
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    scores: tuple[float, ...]
    merges: tuple[str, ...]
    special: dict[str, int]
    """Token ids by role: `bos`, `eos`, `unk`, `pad`, `sep`, `cls`, `mask`."""
    add_bos: bool

    def __len__(self) -> int:
        return len(self.tokens)

    def id(self, token: str) -> int:
        """The id of a token as it is spelled in the file."""
        return self.tokens.index(token)

    def add_to(self, writer: GGUFWriter) -> None:
        """Write all of it into a file's metadata."""
        writer.add_tokenizer_model(self.kind)
        writer.add_tokenizer_pre(self.pre)
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.types)
        if self.scores:
            writer.add_token_scores(self.scores)
        if self.merges:
            writer.add_token_merges(self.merges)
        adders = {
            "bos": writer.add_bos_token_id,
            "eos": writer.add_eos_token_id,
            "unk": writer.add_unk_token_id,
            "pad": writer.add_pad_token_id,
            "sep": writer.add_sep_token_id,
            "mask": writer.add_mask_token_id,
        }
        for role, token in self.special.items():
            if role in adders:
                adders[role](token)
            elif role == "cls":
                writer.add_uint32("tokenizer.ggml.cls_token_id", token)
        if self.kind != "bert":
            writer.add_add_bos_token(self.add_bos)


def spm_vocab(*, fim: bool = True, extra: tuple[str, ...] = ()) -> Vocab:
    """SentencePiece kind: byte tokens, pieces of words with and without a leading space; adds a BOS and a leading space.

    `extra` are further control tokens.
    """
    tokens = ["<unk>", "<s>", "</s>"]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types += [TokenType.BYTE] * 256
    control = [*CHAT_TOKENS, *(FIM_TOKENS if fim else ()), *extra]
    tokens += control
    types += [TokenType.CONTROL] * len(control)

    pieces = dict.fromkeys((SPACE, SPACE * 2, SPACE * 4))
    # A piece can only be reached through pieces that two neighbours spell, so every beginning of a word is one.
    for word in WORDS:
        pieces.update(dict.fromkeys(SPACE + word[:n] for n in range(1, len(word) + 1)))
    for word in WORDS[:60]:
        pieces.update(dict.fromkeys(word[:n] for n in range(1, len(word) + 1)))
    pieces.update(dict.fromkeys((*ASCII, *CJK)))
    tokens += pieces
    types += [TokenType.NORMAL] * len(pieces)

    first_piece = len(tokens) - len(pieces)
    scores = [0.0] * first_piece + [-float(i) for i in range(len(pieces))]
    special = {"unk": 0, "bos": 1, "eos": 2}
    return Vocab("llama", "default", tuple(tokens), tuple(int(t) for t in types), tuple(scores), (), special, add_bos=True)


def bpe_vocab(*, fim: bool = True, extra: tuple[str, ...] = ()) -> Vocab:
    """Byte-pair kind with Llama 3's splitting: byte tokens first, then merges; adds no BOS.

    `extra` are further control tokens.
    """
    letters = _byte_letters()
    tokens = dict.fromkeys(letters)
    merges: dict[str, None] = {}
    spelled = [_spell(text, letters) for word in WORDS for text in (" " + word, word)]
    spelled += [_spell(text, letters) for text in (*CJK, "    ", "\n\n")]
    for word in spelled:
        for n in range(1, len(word)):
            merges.setdefault(f"{word[:n]} {word[n]}")
            tokens.setdefault(word[: n + 1])
    control = ["<|endoftext|>", *CHAT_TOKENS, *(FIM_TOKENS if fim else ()), *extra]
    types = [TokenType.NORMAL] * len(tokens) + [TokenType.CONTROL] * len(control)
    all_tokens = (*tokens, *control)
    special = {"bos": len(tokens), "eos": len(tokens) + 2, "pad": len(tokens)}
    return Vocab("gpt2", "llama-bpe", all_tokens, tuple(int(t) for t in types), (), tuple(merges), special, add_bos=False)


def wpm_vocab() -> Vocab:
    """WordPiece kind, for encoders: whole words, and single characters at a word's beginning and inside."""
    control = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    characters = [c for c in (*ASCII, *CJK) if not c.isupper()]
    pieces = dict.fromkeys([SPACE, *(SPACE + c for c in characters), *characters, *(SPACE + word for word in WORDS)])
    tokens = (*control, *pieces)
    types = [TokenType.CONTROL] * len(control) + [TokenType.NORMAL] * len(pieces)
    special = {"pad": 0, "unk": 1, "cls": 2, "bos": 2, "sep": 3, "eos": 3, "mask": 4}
    return Vocab("bert", "default", tokens, tuple(int(t) for t in types), (), (), special, add_bos=True)


def _byte_letters() -> tuple[str, ...]:
    """The printable letter that stands for each byte in byte-pair vocabularies, in byte order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spare = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in printable else chr(next(spare)) for byte in range(256))


def _spell(text: str, letters: tuple[str, ...]) -> str:
    return "".join(letters[byte] for byte in text.encode())
