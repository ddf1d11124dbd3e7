"""GBNF is read as llama.cpp reads it, and the engine allows exactly its texts."""

from __future__ import annotations

import random

import pytest

from puna.grammar.gbnf import GrammarError, gbnf_to_lark, token_names
from puna.grammar.gbnf.parse import parse
from puna.grammar.gbnf.rules import check_rules
from tests.unit.grammar.reference import RandomGrammars, Reference, Speaker, lark_accepts, variations

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws   # members
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [1-9] [0-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""
SUM = """
root ::= (expr "=" ws term "\\n")+
expr ::= term ([-+*/] term)*
term ::= [a-z]+ ws | [0-9]+ ws | "(" ws expr ")" ws
ws   ::= [ \\t]*
"""

TEXTS = {
    "json": (JSON, ['{"a": [1, -2.5e3, "x\\u00e9\\n"], "b": {}}', "{}"], ['{"a": 01}', '{"a"}', "[1]", '{"a":1}}']),
    "sum": (SUM, ["(a +12)*b=c\n", "x=1\ny=2\n"], ["x=\n", "(x=1\n", "x=1"]),
    "lexemes that overlap": ('root ::= "a" "bc" | "ab" "d"', ["abc", "abd"], ["ab", "abcd"]),
    "a word before its end": ('root ::= [a-z]+ "end"', ["xend", "xendend"], ["end", "xen"]),
    "a word before its end, nested": ('root ::= x "end"\nx ::= "(" x ")" | [a-z]+', ["xendend", "((a))end"], ["((a)end", "end"]),
    "any character": ("root ::= .", ["\n", "é", "😀", '"'], ["", "ab"]),
    "nothing": ('root ::= "" | "a"', ["", "a"], ["aa"]),
    "escapes": (r'root ::= "\x41\u00e9\U0001F600\t\"\\" [\]\-a]', ['Aé😀\t"\\]', 'Aé😀\t"\\-'], ['Aé😀\t"\\b']),
    "old blanks": ('root ::= ws "a" ws\nws ::= ([ \\t\\n] ws)?', ["a", " \n a  "], ["b", "a b"]),
    "a list by recursion": ('root ::= item root | item\nitem ::= "- " [a-z]+ "\\n"', ["- a\n- b\n"], ["", "- \n"]),
    "bounds": ('root ::= "a"{2} [b]{1,3} "c"{0,1} "d"{2,}', ["aabdd", "aabbbcddd"], ["abdd", "aabbbbdd", "aabd"]),
    "a group many times": ('root ::= ("ab" | "c"){2,3}', ["abc", "cc", "ababab"], ["ab", "cccc"]),
    "lines and comments": ('# a\nroot ::= "a" | # b\n  "b" (\n "c"\n | "d" # e\n)\n\n', ["a", "bc", "bd"], ["b", "ac"]),
    "a class with a hyphen": ("root ::= [a-]+", ["a-a"], ["b"]),
    "not in a class": ('root ::= [^a-c"]', ["d", "\n", "€"], ["a", '"', ""]),
    "names": ('root ::= my-rule_2 "x"\nmy-rule_2 ::= "y"', ["yx"], ["x"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_a_grammar(name: str) -> None:
    grammar, good, bad = TEXTS[name]
    lark = gbnf_to_lark(grammar)
    assert [text for text in good if not lark_accepts(lark, text)] == []
    assert [text for text in bad if lark_accepts(lark, text)] == []


ERRORS = {
    "": "no rule called 'root'",
    "answer ::= 'yes'": "line 1, column 12",
    'a ::= "x"': "no rule called 'root'",
    "root ::= nothing": "line 1: rule 'nothing' is not defined",
    'root ::= "a"\nx ::= (\n  "b"\n  [c-': "line 4, column 6: the character class is not closed",
    'root ::= "a': "line 1, column 12: the text in quotes is not closed",
    'root ::= ("a"': "')' is expected",
    'root ::= "a")': "the end of the rule is expected",
    "root = x": "'::=' is expected",
    'root ::= "\\q"': "'\\q' is not an escape",
    'root ::= "\\uD800"': "D800 is not the code of a character",
    'root ::= "\\x4"': "hexadecimal digits",
    "root ::= [z-a]": "a range of characters ends before it begins",
    "root ::= []": "a character class is empty",
    "root ::= *": "nothing before '*' to repeat",
    'root ::= "a"{3,2}': "at least 3 and at most 2",
    'root ::= "a"{1000000}': "more than 100000 repetitions",
    'root ::= "a"{x}': "a number of repetitions is expected",
    "root ::= root": "rule 'root' is left-recursive",
    'root ::= root "a" | "b"': "rule 'root' is left-recursive",
    'root ::= x\nx ::= y? z\ny ::= "a"\nz ::= x "b" | "c"': "rule 'x' is left-recursive",
    'root ::= ("a"*)*': "line 1: something that may be empty is repeated without end",
    'root ::= x+\nx ::= "a"?': "something that may be empty is repeated without end",
    'root ::= "a" root': "rule 'root' can never come to an end",
    "root ::= <nowhere>": "'<nowhere>' is not one token",
    "root ::= <[1": "'>' is expected",
    "root ::= " + "(" * 60 + '"a"' + ")" * 60: "nested deeper than 50 levels",
}


@pytest.mark.parametrize("grammar", ERRORS)
def test_errors_say_where_and_what(grammar: str) -> None:
    with pytest.raises(GrammarError) as caught:
        gbnf_to_lark(grammar)
    assert ERRORS[grammar] in str(caught.value)
    assert len(str(caught.value)) < 300


def test_tokens_are_named_by_id_or_by_text() -> None:
    lark = gbnf_to_lark('root ::= <think> !<[7]>* "x"', {"<think>": 5}.get)
    assert "<[5]>" in lark and "<[^7]>" in lark
    assert token_names('root ::= <think> "<a>" <[5]> <|end|>\n[<]') == ["<think>", "<a>", "<|end|>"]


def test_preserved_tokens_may_stand_for_their_texts() -> None:
    lark = gbnf_to_lark('root ::= "<call>" [a-z]+ "</call>"', preserved={"<call>": 3, "</call>": 4})
    assert lark_accepts(lark, "<call>ab</call>")
    assert "<[3]>" in lark and "<[4]>" in lark
    assert "<[" not in gbnf_to_lark('root ::= "<call>"', preserved={"<other>": 3})


def test_deep_groups_and_many_rules_do_not_overflow() -> None:
    deep = "root ::= " + "(" * 50 + '"a" | "b" root' + ")+" * 50
    assert lark_accepts(gbnf_to_lark(deep), "aba")
    doubling = "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(30)) + '\nr30 ::= "x"\nroot ::= r0'
    assert gbnf_to_lark(doubling).startswith("%llguidance")


def agree(grammar: str, seed: int) -> None:
    """The engine and a matcher that follows the rules literally say the same of texts of the grammar and near it."""
    rules = parse(grammar)
    try:
        check_rules(rules)
    except GrammarError:
        return
    lark = gbnf_to_lark(grammar)
    reference, speaker, choose = Reference(rules), Speaker(rules, seed), random.Random(seed)
    spoken = (speaker.text() for _ in range(3))
    for text in {near for said in spoken if said is not None and len(said) < 40 for near in variations(said, choose)}:
        assert lark_accepts(lark, text) == reference.accepts(text), (grammar, text)


def test_any_grammar_allows_exactly_its_texts() -> None:
    made = RandomGrammars(0)
    for seed in range(250):
        agree(made.grammar(), seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_very_many_grammars_allow_exactly_their_texts() -> None:
    made = RandomGrammars(1)
    for seed in range(1000):
        agree(made.grammar(), seed)
