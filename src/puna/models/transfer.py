"""Brings one large file of a repository into the cache. What has come of it stays when the transfer breaks off, whatever
ends it, and the next one goes on there."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

from huggingface_hub import constants, get_token, hf_hub_url
from huggingface_hub.file_download import http_get, repo_folder_name

from puna.errors import StartupError

CHUNK = 1 << 22


def transfer(repo: str, path: str, *, size: int, sha256: str, token: str | None) -> None:
    """Put the file where `hf_hub_download` looks for it, unless it is there: under its checksum, which it is held against.

    Raises `StartupError` for a file that came damaged, which is deleted, and for one that another process is fetching;
    besides that whatever `huggingface_hub` raises.
    """
    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model") / "blobs"
    whole, partial = folder / sha256, folder / f"{sha256}.partial"
    if whole.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with partial.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StartupError(f"{repo} {path} is being fetched by another process") from error
        if file.tell() < size:
            url = hf_hub_url(repo, path)
            key = token or get_token()
            headers = {"authorization": f"Bearer {key}"} if key else {}
            http_get(url, file, resume_size=file.tell(), headers=headers, expected_size=size)
        file.flush()
        if digest(partial) != sha256:
            partial.unlink()
            raise StartupError(f"{repo} {path} came damaged, and was deleted; start again")
        os.replace(partial, whole)


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()
