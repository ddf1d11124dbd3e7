"""The shape of the code, guarded: which package may import which, how long a file may be, what may not be written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "puna"
LONGEST = 400

BASE = frozenset(
    {
        *("errors", "types", "outline", "chat_templates", "config", "log", "machine", "gguf", "pooling", "tuning"),
        *("calibration_file", "speculation", "media", "counters"),
    }
)

MAY_IMPORT: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "types": frozenset({"errors", "pooling", "tuning", "speculation", "media", "counters"}),
    "outline": frozenset({"errors", "types"}),
    "chat_templates": frozenset(),
    "config": frozenset({"errors", "types", "speculation"}),
    "log": frozenset({"errors", "types", "config"}),
    "machine": frozenset({"errors"}),
    "gguf": frozenset({"errors"}),
    "pooling": frozenset(),
    "tuning": frozenset(),
    "speculation": frozenset(),
    "media": frozenset(),
    "counters": frozenset(),
    "calibration_file": frozenset({"tuning", "config", "machine"}),
    "settings": BASE,
    "llama": BASE,
    "grammar": BASE,
    "ipc": BASE,
    "engine": BASE | {"llama", "ipc", "grammar"},
    "client": BASE | {"ipc", "llama.vocab", "llama.model"},
    "chat": BASE,
    "mediafiles": BASE,
    "service": BASE | {"chat", "grammar", "mediafiles"},
    "api": BASE | {"service"},
    "models": BASE | {"client"},
    "server": BASE | {"api", "service", "models", "client", "chat", "settings"},
    "bench": BASE,
    "doctor": BASE,
    "cli": BASE | {"server", "models", "settings", "bench", "doctor"},
}
"""Package to what it may import, itself and puna's version aside. A dotted name allows that module alone."""

ENGINE_LIBRARIES = frozenset({"llama_cpp", "ctypes"})
WEB_LIBRARIES = frozenset({"fastapi", "starlette", "uvicorn"})

FORBIDDEN = {
    "an unfinished thing": re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"),
    "an issue number": re.compile(r"\bissues? *#?\d+\b|\bcloses? #\d+|(?<![\w&/])#[1-9]\d*\b(?!;)", re.IGNORECASE),
    "a path of one machine": re.compile(r"(?<![\w.])/(work|home/\w+|root|Users/\w+)/|(?<![\w.])/tmp/w\b"),
    "a switched-off check without a reason": re.compile(
        r"#\s*type:\s*ignore(\[[\w-]+(, *[\w-]+)*\])?\s*$|#\s*noqa(: *[\w, ]+)?\s*$", re.MULTILINE
    ),
}


def python_files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*.py")) if "__pycache__" not in file.parts]


def imports(file: Path) -> set[str]:
    """Full names of the modules that a file imports, relative ones resolved, those of `from` with each name added."""
    package = [*file.relative_to(ROOT / "src").with_suffix("").parts][:-1] if SOURCE in file.parents else []
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def room(file: Path) -> str:
    """The row of the table that a file belongs to."""
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def allowed(owner: str, module: str) -> bool:
    """Whether the package `owner` may import `module`."""
    if module in {"puna", "puna.__version__"}:
        return True
    name = module.removeprefix("puna.")
    rights = MAY_IMPORT[owner] | {owner}
    return any(name == right or name.startswith(right + ".") for right in rights)


def test_the_table_has_a_row_for_every_package() -> None:
    ours = {room(file) for file in python_files(SOURCE)} - {"__init__", "__main__"}
    assert ours <= MAY_IMPORT.keys()


def test_the_table_has_no_circles() -> None:
    done: set[str] = set()
    rows = {owner: {right.split(".")[0] for right in rights} for owner, rights in MAY_IMPORT.items()}
    while len(done) < len(rows):
        ready = {owner for owner, rights in rows.items() if owner not in done and rights - {owner} <= done}
        assert ready, f"a circle among {sorted(rows.keys() - done)}"
        done |= ready


@pytest.mark.parametrize("owner", sorted(MAY_IMPORT))
def test_imports_follow_the_table(owner: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in python_files(SOURCE)
        if room(file) == owner
        for module in sorted(imports(file))
        if module.split(".")[0] == "puna" and not allowed(owner, module)
    ]
    assert not wrong, "\n".join(wrong)


def test_only_llama_touches_the_engine_library() -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in python_files(SOURCE)
        if room(file) != "llama"
        for module in imports(file)
        if module.split(".")[0] in ENGINE_LIBRARIES
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_edge_knows_the_web_framework() -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in python_files(SOURCE)
        if room(file) not in {"api", "server"}
        for module in imports(file)
        if module.split(".")[0] in WEB_LIBRARIES
    ]
    assert not wrong, "\n".join(wrong)


def test_dialects_do_not_know_each_other() -> None:
    folders = {folder.name for folder in (SOURCE / "api").iterdir() if folder.is_dir() and folder.name != "__pycache__"}
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in python_files(SOURCE / "api")
        for own in [file.relative_to(SOURCE / "api").parts[0]]
        for module in imports(file)
        if own in folders and module.startswith("puna.api.") and module.split(".")[2] in folders - {own}
    ]
    assert not wrong, "\n".join(wrong)


def test_files_are_small() -> None:
    files = [*python_files(ROOT / "src"), *python_files(ROOT / "tests"), *python_files(ROOT / "tools")]
    long = {
        str(file.relative_to(ROOT)): n for file in files if (n := len(file.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert not long


def texts() -> list[Path]:
    own = Path(__file__)
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.md"), ROOT / "Makefile"]
    code = [*python_files(ROOT / "src"), *python_files(ROOT / "tests"), *python_files(ROOT / "tools")]
    return [file for file in (*documents, *code) if file != own]


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_some_things_are_not_written(what: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)}: {found.group().strip()!r}"
        for file in texts()
        if (found := FORBIDDEN[what].search(file.read_text(encoding="utf-8")))
    ]
    assert not wrong, f"{what}: " + "\n".join(wrong)


@pytest.mark.parametrize(
    ("what", "text", "found"),
    [
        ("an unfinished thing", "# TODO later", True),
        ("an unfinished thing", "todo lists", False),
        ("an issue number", "see issue 12", True),
        ("an issue number", "fixes #12", True),
        ("an issue number", "&#12; or colour", False),
        ("a path of one machine", "open('/work/main/x')", True),
        ("a path of one machine", "framework/x", False),
        ("a switched-off check without a reason", "x = 1  # type: ignore[misc]", True),
        ("a switched-off check without a reason", "x = 1  # type: ignore[misc]  # the stub is wrong", False),
        ("a switched-off check without a reason", "x = 1  # noqa: E501", True),
    ],
)
def test_the_patterns_find_what_they_should(what: str, text: str, found: bool) -> None:
    assert bool(FORBIDDEN[what].search(text)) is found


def test_py_typed_is_shipped() -> None:
    assert (SOURCE / "py.typed").is_file()
