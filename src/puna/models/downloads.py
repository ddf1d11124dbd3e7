"""Models fetched from a Hugging Face repository into its usual cache: resumed, checked, found again without a network."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

from huggingface_hub import HfApi, hf_hub_download, try_to_load_from_cache
from huggingface_hub import scan_cache_dir as scan_cache
from huggingface_hub.errors import CacheNotFound, GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

from puna.errors import StartupError
from puna.models.repository import Chosen, RemoteFile, Wanted, choose
from puna.models.transfer import transfer

ClientError = cast("type[Exception]", HfHubHTTPError.__mro__[1])
"""What the HTTP client raises that huggingface-hub uses: another one from version to version, and not always an `OSError`."""

NETWORK = (HfHubHTTPError, ClientError, OSError)
"""What goes wrong on the way."""


def fetch(spec: str, *, offline: bool = False, token: str | None = None, say: Callable[[str], None] = print) -> str:
    """The path of the model's first file, fetched if it is not there. Raises `StartupError` in words.

    A download that was cut goes on where it ended. Each new file is held against the checksum that the repository names;
    one that differs is deleted. With `offline`, or where the repository cannot be asked, what is there already is used.
    """
    wanted = Wanted.parse(spec)
    if offline:
        return _kept(wanted)
    try:
        listed = _listed(wanted, token)
    except NETWORK as error:
        reason = f"{wanted.repo} cannot be listed on {_hub()}: {_reason(error)}"
        try:
            path = _kept(wanted)
        except StartupError:
            raise StartupError(f"{reason}; nothing of it is there from before") from error
        say(f"{reason}; the file that is there is taken")
        return path
    chosen = choose(listed, wanted)
    paths = [_download(wanted, file, token, say) for file in chosen.files]
    return paths[0]


def _listed(wanted: Wanted, token: str | None) -> list[RemoteFile]:
    """The repository's files, asked for once. Raises one of `NETWORK` if it cannot be asked."""
    try:
        found = HfApi(token=token).model_info(wanted.repo, files_metadata=True).siblings or []
    except GatedRepoError as error:
        raise StartupError(f"{wanted.repo} asks for permission: accept its terms on its page, and set HF_TOKEN") from error
    except RepositoryNotFoundError as error:
        raise StartupError(f"there is no repository {wanted.repo}, or it is private and HF_TOKEN does not open it") from error
    return [RemoteFile(one.rfilename, one.size or 0, one.lfs.sha256 if one.lfs is not None else "") for one in found]


def _hub() -> str:
    return HfApi().endpoint.partition("://")[2]


def _download(wanted: Wanted, file: RemoteFile, token: str | None, say: Callable[[str], None]) -> str:
    known = try_to_load_from_cache(wanted.repo, file.path)
    if isinstance(known, str) and os.path.getsize(known) == file.size:
        return known
    say(f"fetching {wanted.repo} {file.path}, {file.size >> 20} MiB")
    try:
        if file.sha256:
            transfer(wanted.repo, file.path, size=file.size, sha256=file.sha256, token=token)
        path = hf_hub_download(wanted.repo, file.path, token=token)
    except (*NETWORK, LocalEntryNotFoundError, ValueError) as error:
        raise StartupError(f"{wanted.repo} {file.path} could not be fetched: {_reason(error)}; start again to go on") from error
    return str(path)


def _kept(wanted: Wanted) -> str:
    """The model's first file in the cache."""
    files: dict[str, str] = {}
    try:
        repositories = [one for one in scan_cache().repos if one.repo_id == wanted.repo and one.repo_type == "model"]
    except CacheNotFound:
        repositories = []
    for repository in repositories:
        for revision in sorted(repository.revisions, key=lambda one: one.last_modified):
            for file in revision.files:
                name = str(Path(file.file_path).relative_to(revision.snapshot_path))
                files[name] = str(file.file_path)
    if not files:
        raise StartupError(f"{wanted.repo} is not there yet; fetch it with `puna pull {wanted.repo}` while there is a network")
    chosen: Chosen = choose([RemoteFile(name, os.path.getsize(path)) for name, path in files.items()], wanted)
    return files[chosen.model[0].path]


def kept_models() -> list[tuple[str, str, int]]:
    """Repository, path and bytes of every GGUF file in the cache."""
    try:
        repositories = scan_cache().repos
    except CacheNotFound:
        return []
    found = {
        str(file.file_path): (repository.repo_id, file.size_on_disk)
        for repository in repositories
        for revision in repository.revisions
        for file in revision.files
        if str(file.file_name).lower().endswith(".gguf")
    }
    return sorted((repo, path, size) for path, (repo, size) in found.items())


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
