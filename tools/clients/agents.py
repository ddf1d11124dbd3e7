"""Coding agents for the command line: each says what the model says, and runs the command that the model calls for."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from typing import Any

from tests.clients.scenes import SAID, call
from tools.clients.client import CHAT, MESSAGES, RESPONSES, Client, Run

WRITES = "echo it-ran > ran.txt"
SHELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "shell": ("bash", {"command": WRITES, "description": "Writes a file"}),
    "shell of claude": ("Bash", {"command": WRITES, "description": "Writes a file"}),
    "shell of cline": ("run_commands", {"commands": [WRITES]}),
    "shell of codex": ("exec_command", {"cmd": WRITES}),
    "shell of continue": ("Bash", {"command": WRITES}),
    "shell of qwen": ("run_shell_command", {"command": WRITES, "description": "Writes a file", "is_background": False}),
}
"""What the model says to have a command run, in the words of each agent's own tool."""
SAID.update({scene: (call(name, json.dumps(arguments)),) for scene, (name, arguments) in SHELLS.items()})

CODEX = """
    model = "m"
    model_provider = "puna"
    [model_providers.puna]
    name = "puna"
    base_url = "{url}"
    wire_api = "responses"
    env_key = "OPENAI_API_KEY"
    request_max_retries = 0
    stream_max_retries = 0
"""
CONTINUE = """
    name: puna
    version: 1.0.0
    schema: v1
    models:
      - {{name: m, provider: openai, model: m, apiBase: "{url}", apiKey: x, roles: [chat], capabilities: [tool_use]}}
"""


def _talk(run: Run, path: str, say: Callable[[str], str], shell: str = "shell") -> None:
    """An answer takes one request, and a command with an answer after it two."""
    with run.live.turns(path):
        assert "Hello world" in say("play: plain")
    with run.live.turns(path, path):
        assert "It is sunny in Rome." in say(f"play: {shell}")
    run.took_effect()


def _codex(run: Run) -> None:
    (run.home / "config.toml").write_text(textwrap.dedent(CODEX).format(url=run.live.url))
    flags = ("exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox")
    _talk(run, RESPONSES, lambda text: run.program("codex", *flags, text, CODEX_HOME=str(run.home)), "shell of codex")


def _claude_code(run: Run) -> None:
    env = {"ANTHROPIC_MODEL": "m", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    flags = ("--output-format", "json", "--allowedTools", "Bash")
    _talk(run, MESSAGES, lambda text: run.program("claude", "-p", text, *flags, **env), "shell of claude")


def _continue(run: Run) -> None:
    config = run.home / "c.yaml"
    config.write_text(textwrap.dedent(CONTINUE).format(url=run.live.url))
    _talk(run, CHAT, lambda text: run.program("cn", "-p", text, "--auto", "--config", config), "shell of continue")


def _opencode(run: Run) -> None:
    options = {"baseURL": run.live.url, "apiKey": "x"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {}}}
    # Without this it asks for a title too, in a request of its own.
    more = {"agent": {"title": {"disable": True}}, "permission": "allow", "autoupdate": False, "share": "disabled"}
    config = run.home / "opencode.json"
    config.write_text(json.dumps({"provider": {"puna": provider}, "model": "puna/m", "small_model": "puna/m", **more}))
    names = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    env = {"OPENCODE_CONFIG": str(config)} | {f"OPENCODE_DISABLE_{name}": "1" for name in names}
    _talk(run, CHAT, lambda text: run.program("opencode", "run", "--format", "json", text, **env))


def _qwen_code(run: Run) -> None:
    (run.home / ".qwen").mkdir()
    # Without this it asks what to remember too, in a request of its own.
    (run.home / ".qwen/settings.json").write_text(json.dumps({"memory": {"enableManagedAutoMemory": False}}))
    flags = ("--auth-type", "openai", "--yolo")
    _talk(run, CHAT, lambda text: run.program("qwen", *flags, "-p", text, OPENAI_MODEL="m"), "shell of qwen")


def _pi(run: Run) -> None:
    folder = run.home / ".pi/agent"
    folder.mkdir(parents=True)
    price = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    model = {
        "id": "m",
        "name": "m",
        "reasoning": False,
        "input": ["text"],
        "cost": price,
        "contextWindow": 65536,
        "maxTokens": 4096,
    }
    ways = (("openai-completions", run.live.url, CHAT), ("openai-responses", run.live.url, RESPONSES))
    for api, base, path in (*ways, ("anthropic-messages", run.live.root, MESSAGES)):
        provider = {"baseUrl": base, "api": api, "apiKey": "x", "models": [model]}
        (folder / "models.json").write_text(json.dumps({"providers": {"puna": provider}}))
        _talk(run, path, lambda text: run.program("pi", "--provider", "puna", "--model", "m", "-p", text, PI_OFFLINE="1"))


def _copilot(run: Run) -> None:
    ways = (("openai", "completions", CHAT), ("openai", "responses", RESPONSES), ("anthropic", "completions", MESSAGES))
    for kind, wire, path in ways:
        provider = {
            "TYPE": kind,
            "WIRE_API": wire,
            "BASE_URL": run.live.root if kind == "anthropic" else run.live.url,
            "API_KEY": "x",
            "MAX_PROMPT_TOKENS": "1000000",  # what it takes for too much it has summed up first
            "MAX_OUTPUT_TOKENS": "4000",
        }
        env = {f"COPILOT_PROVIDER_{name}": value for name, value in provider.items()}
        env |= {"COPILOT_MODEL": "m", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}

        def say(text: str, env: dict[str, str] = env) -> str:
            return run.program("copilot", "-p", text, "-s", "--allow-all-tools", **env)

        _talk(run, path, say)


def _cline(run: Run) -> None:
    provider = ("openai-compatible", "-k", "x", "-m", "m")
    run.program("cline", "auth", "-p", *provider, "-b", run.live.url)
    _talk(run, CHAT, lambda text: run.program("cline", "--json", "-P", *provider, text), "shell of cline")


def _aider(run: Run) -> None:
    flags = "--yes-always --no-git --no-check-update --analytics-disable --no-show-model-warnings --map-tokens 0"
    asked = ("--model", "openai/m", "--edit-format", "whole", "--message", "play: plain", "a.py")
    with run.live.turns(CHAT):
        assert "Hello world" in run.program("aider", *flags.split(), *asked)


AGENTS = (
    Client("codex", ("@openai/codex@0.171.0",), _codex, npm=True),
    Client("claude-code", ("@anthropic-ai/claude-code@2.1.332",), _claude_code, npm=True),
    Client("copilot", ("@github/copilot@1.0.102",), _copilot, npm=True),
    Client("opencode", ("opencode-ai@1.18.33",), _opencode, npm=True),
    Client("qwen-code", ("@qwen-code/qwen-code@0.15.10",), _qwen_code, npm=True),
    Client("pi", ("@mariozechner/pi-coding-agent@0.73.1",), _pi, npm=True),
    Client("continue", ("@continuedev/cli@1.5.47",), _continue, npm=True),
    Client("cline", ("cline@3.0.65",), _cline, npm=True),
    Client("aider", ("aider-chat==0.86.2",), _aider),
)
