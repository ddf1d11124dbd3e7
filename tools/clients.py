"""Try clients that are too large for every run: libraries that need an environment of their own, and coding agents.

    make clients                       all of them
    make clients ARGS="codex aider"    some

Each is installed, pinned, below `.venv/clients` and run headless, in an empty home, against the HTTP server around a scripted
engine. A client passes if it did what the script asked for and the server's log has exactly the requests that takes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.clients.live import Live
from tests.clients.scenes import SAID, Stage, call

HOME = Path(sys.prefix) / "clients"
CHAT, RESPONSES, MESSAGES = ("POST /v1/chat/completions 200", "POST /v1/responses 200", "POST /v1/messages 200")
SAID["shell of codex"] = (call("exec_command", '{"cmd": "echo it-ran > ran.txt"}'),)
SAID["shell of claude"] = (call("Bash", '{"command": "echo it-ran > ran.txt", "description": "Writes a file"}'),)

INSTRUCTOR = """
    import instructor, pydantic
    City = pydantic.create_model("City", city=(str, ...), degrees=(int, ...))
    for mode, scene in (("TOOLS", "city call"), ("JSON", "city"), ("JSON_SCHEMA", "city"), ("RESPONSES_TOOLS", "city call")):
        client = instructor.from_provider("openai/m", mode=getattr(instructor.Mode, mode), max_retries=0)
        got = client.create(messages=[{"role": "user", "content": "play: " + scene}], response_model=City, max_retries=0)
        assert (got.city, got.degrees) == ("Rome", 21), (mode, got)
"""
LLAMA_INDEX = """
    import pydantic
    from llama_index.core.llms import ChatMessage
    from llama_index.core.tools import FunctionTool
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding
    from llama_index.llms.openai_like import OpenAILike
    import os
    base = os.environ["OPENAI_BASE_URL"]
    more = dict(model="m", api_base=base, api_key="x", is_chat_model=True, is_function_calling_model=True, max_retries=0)
    llm = OpenAILike(**more)
    assert llm.complete("play: plain").text == "Hello world"
    assert "".join(part.delta or "" for part in llm.stream_chat([ChatMessage(content="play: plain")])) == "Hello world"
    def weather(city: str) -> str:
        "Tells the weather."
        return "sunny"
    reply = llm.chat_with_tools([FunctionTool.from_defaults(weather)], user_msg="play: two calls", allow_parallel_tool_calls=True)
    assert [one.tool_kwargs["city"] for one in llm.get_tool_calls_from_response(reply)] == ["Rome", "Oslo"]
    embed = OpenAILikeEmbedding(model_name="m", api_base=base, api_key="x")
    assert len(embed.get_text_embedding("a")) == 4
"""
CODEX = """
    model = "m"
    model_provider = "puna"
    [model_providers.puna]
    name = "puna"
    base_url = "{url}"
    wire_api = "responses"
    env_key = "PUNA_KEY"
    request_max_retries = 0
    stream_max_retries = 0
"""
CONTINUE = """
    name: puna
    version: 1.0.0
    schema: v1
    models:
      - {{name: m, provider: openai, model: m, apiBase: "{url}", apiKey: x, roles: [chat]}}
"""


@dataclass(frozen=True)
class Client:
    """One client: what to install, and what to do with it."""

    name: str
    packages: tuple[str, ...]
    run: Callable[[Path, Path, Live], None]
    """Gets the folder where it is installed, an empty home, and the server."""
    npm: bool = False

    def install(self) -> Path:
        """Its folder; installs it unless just these versions are there."""
        folder = HOME / self.name
        stamp = folder / "stamp"
        wanted = "\n".join(self.packages)
        if stamp.is_file() and stamp.read_text() == wanted:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if self.npm:
            command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *self.packages]
        else:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            command = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *self.packages]
        subprocess.run(command, check=True)
        stamp.write_text(wanted)
        return folder


def execute(live: Live, home: Path, *command: str | Path, **env: str) -> str:
    """What a command says on standard output. It sees nothing of this environment but the path."""
    settings: Mapping[str, str] = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "OPENAI_BASE_URL": live.url,
        "OPENAI_API_BASE": live.url,
        "OPENAI_API_KEY": "x",
        "ANTHROPIC_BASE_URL": live.root,
        "ANTHROPIC_API_KEY": "x",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PUNA_KEY": "x",
        **env,
    }
    done = subprocess.run(
        [str(part) for part in command], cwd=home, env=dict(settings), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def instructor(folder: Path, home: Path, live: Live) -> None:
    with live.turns(CHAT, CHAT, CHAT, RESPONSES):
        execute(live, home, folder / "bin/python", "-c", textwrap.dedent(INSTRUCTOR))


def llama_index(folder: Path, home: Path, live: Live) -> None:
    with live.turns(CHAT, CHAT, CHAT, "POST /v1/embeddings 200"):
        execute(live, home, folder / "bin/python", "-c", textwrap.dedent(LLAMA_INDEX))


def codex(folder: Path, home: Path, live: Live) -> None:
    (home / "config.toml").write_text(textwrap.dedent(CODEX).format(url=live.url))
    program = folder / "node_modules/.bin/codex"
    common = ("exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox")
    with live.turns(RESPONSES):
        assert "Hello world" in execute(live, home, program, *common, "play: plain", CODEX_HOME=str(home))
    with live.turns(RESPONSES, RESPONSES):
        assert "It is sunny in Rome." in execute(live, home, program, *common, "play: shell of codex", CODEX_HOME=str(home))
    assert (home / "ran.txt").read_text() == "it-ran\n"


def claude_code(folder: Path, home: Path, live: Live) -> None:
    program = folder / "node_modules/.bin/claude"
    env = {"ANTHROPIC_MODEL": "m", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    with live.turns(MESSAGES):
        told = execute(live, home, program, "-p", "play: plain", "--output-format", "json", **env)
        assert "Hello world" in told
    with live.turns(MESSAGES, MESSAGES):
        told = execute(
            live, home, program, "-p", "play: shell of claude", "--output-format", "json", "--allowedTools", "Bash", **env
        )
        assert "It is sunny in Rome." in told
    assert (home / "ran.txt").read_text() == "it-ran\n"


def continue_cli(folder: Path, home: Path, live: Live) -> None:
    (home / "c.yaml").write_text(textwrap.dedent(CONTINUE).format(url=live.url))
    with live.turns(CHAT):
        told = execute(live, home, folder / "node_modules/.bin/cn", "-p", "play: plain", "--config", home / "c.yaml")
        assert "Hello world" in told


def aider(folder: Path, home: Path, live: Live) -> None:
    flags = "--yes-always --no-git --no-check-update --analytics-disable --no-show-model-warnings --map-tokens 0"
    asked = ("--model", "openai/m", "--edit-format", "whole", "--message", "play: plain", "a.py")
    with live.turns(CHAT):
        told = execute(live, home, folder / "bin/aider", *flags.split(), *asked)
        assert "Hello world" in told


CLIENTS = (
    Client("instructor", ("instructor==1.17.0",), instructor),
    Client("llama-index", ("llama-index-llms-openai-like==0.8.1", "llama-index-embeddings-openai-like==0.4.0"), llama_index),
    Client("codex", ("@openai/codex@0.171.0",), codex, npm=True),
    Client("claude-code", ("@anthropic-ai/claude-code@2.1.332",), claude_code, npm=True),
    Client("continue", ("@continuedev/cli@1.5.47",), continue_cli, npm=True),
    Client("aider", ("aider-chat==0.86.2",), aider),
)


def attempt(client: Client) -> str:
    """What became of it, in a line."""
    if client.npm and shutil.which("npm") is None:
        return "not run: there is no npm"
    try:
        folder = client.install()
    except subprocess.CalledProcessError as error:
        return f"not run: cannot be installed ({error})"
    with Live(Stage()) as live, tempfile.TemporaryDirectory() as home:
        try:
            client.run(folder, Path(home), live)
        except (AssertionError, subprocess.TimeoutExpired):
            traceback.print_exc()
            print(*live.lines, sep="\n", file=sys.stderr)
            return "failed"
    return "passed"


def main(names: list[str]) -> int:
    """0 if nothing failed."""
    unknown = set(names) - {client.name for client in CLIENTS}
    if unknown:
        print(f"there is no {', '.join(sorted(unknown))} among {', '.join(client.name for client in CLIENTS)}", file=sys.stderr)
        return 2
    results: dict[str, str] = {}
    for client in CLIENTS:
        if not names or client.name in names:
            results[client.name] = attempt(client)
            print(f"{' '.join(client.packages):80} {results[client.name]}", flush=True)
    return int("failed" in results.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
