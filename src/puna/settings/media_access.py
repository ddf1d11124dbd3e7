"""Options of where requests may have pictures and sounds from."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.values import Switch, Text, Words

ACCESS = "Pictures and sounds in requests"

MEDIA_ACCESS_OPTIONS = (
    Option(
        flags=("--media-path",),
        kind=Text("DIR"),
        target="server.media_path",
        variables=("LLAMA_ARG_MEDIA_PATH",),
        group=ACCESS,
        help="a folder whose files requests may name as file: addresses; without it only what a request brings itself is read",
    ),
    Option(
        flags=("--media-fetch",),
        off_flags=("--no-media-fetch",),
        kind=Switch(),
        target="server.media_fetch",
        group=ACCESS,
        help="fetch pictures and sounds that requests name by http: and https: addresses of the internet",
    ),
    Option(
        flags=("--media-host",),
        kind=Words("HOST"),
        target="server.media_hosts",
        group=ACCESS,
        help="fetch from this host only, or with a dot before it, from all below it; may be repeated",
    ),
    Option(
        flags=("--media-fetch-private",),
        kind=Switch(),
        target="server.media_fetch_private",
        group=ACCESS,
        help="fetch from hosts of private networks and from this machine too: who may send requests can then reach them",
    ),
)
