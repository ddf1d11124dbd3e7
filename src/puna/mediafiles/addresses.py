"""Which machines may be asked for media: not this one, nor those that only this one can reach, unless that is allowed. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_TRANSLATED = IPv6Network("64:ff9b::/96")
_TRANSLATED_LOCALLY = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
_SHARED = IPv4Network("100.64.0.0/10")


def is_public(address: str) -> bool:
    """Whether an address is one of the internet: no loopback, private, link-local, shared, multicast or reserved one.

    IPv6 addresses that stand for an IPv4 address count as that.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        if found in _TRANSLATED_LOCALLY or found.teredo is not None:
            return False  # another way to machines that cannot be told from here
        inner = _inner(found)
        if inner is not None:
            return _is_public(inner)
    return _is_public(found)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    special = (
        address.is_private or address.is_loopback or address.is_link_local or address.is_multicast or address.is_reserved
        or address.is_unspecified
    )  # fmt: skip
    if isinstance(address, IPv4Address):
        return address.is_global and not special and address not in _SHARED
    return address.is_global and not special and not address.is_site_local


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _TRANSLATED or address in _COMPATIBLE:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
