"""Formats of strings as regular expressions.

Each allows only texts that the usual validators accept: no leap seconds, no year 0, capital `T` and `Z`. A format that is
not here cannot be enforced. Formats of numbers are bounds.
"""

from __future__ import annotations

_YEAR = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    rf"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_ZONE = r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_TIME = rf"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?{_ZONE}"

_HEX4 = "[0-9a-fA-F]{1,4}"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"(?:{_BYTE}\.){{3}}{_BYTE}"
_IPV6 = "(?:" + "|".join(
    [rf"(?:{_HEX4}:){{7}}{_HEX4}", rf"(?:{_HEX4}:){{1,7}}:", rf":(?::{_HEX4}){{1,7}}", "::"]
    + [rf"(?:{_HEX4}:){{1,{7 - n}}}(?::{_HEX4}){{1,{n}}}" for n in range(1, 7)]
) + ")"  # fmt: skip

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_ATEXT = r"[a-zA-Z0-9!#$%&'*+/=?\^_`{|}~-]+"
_EMAIL = rf"{_ATEXT}(?:\.{_ATEXT})*@{_HOST}"

_PCHAR = r"(?:[a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})"
_SEGMENT_NC = r"(?:[a-zA-Z0-9._~!$&'()*+,;=@-]|%[0-9a-fA-F]{2})+"
_AUTHORITY = rf"(?:[a-zA-Z0-9._~!$&'()*+,;=:-]*@)?(?:{_HOST}|\[{_IPV6}\])(?::[0-9]{{1,5}})?"
_REST = rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:\#(?:{_PCHAR}|[/?])*)?"
_PATH = rf"(?:/{_PCHAR}*)*"
_URI = rf"[a-zA-Z][a-zA-Z0-9+.-]*:(?://{_AUTHORITY}{_PATH}|/?{_PCHAR}+{_PATH}){_REST}"
_URI_REFERENCE = rf"(?:{_URI}|(?://{_AUTHORITY}{_PATH}|/?{_SEGMENT_NC}{_PATH}|/)?{_REST})"
_URI_TEMPLATE = (
    r"(?:[a-zA-Z0-9._~!$&()*+,;=:@/?\#-]|%[0-9a-fA-F]{2}|\{[+\#./;?&]?[a-zA-Z0-9_]+(?:\*|:[1-9][0-9]{0,3})?"
    r"(?:,[a-zA-Z0-9_]+(?:\*|:[1-9][0-9]{0,3})?)*\})*"
)

_DURATION = (
    r"P(?:[0-9]+W|(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?"
    r"|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))"
)
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"

STRINGS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}T{_TIME}",
    "datetime": rf"{_DATE}T{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "idn-email": _EMAIL,
    "hostname": _HOST,
    "host-name": _HOST,
    "idn-hostname": _HOST,
    "ipv4": _IPV4,
    "ip-address": _IPV4,
    "ipv6": _IPV6,
    "uuid": r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    "uri": _URI,
    "url": _URI,
    "iri": _URI,
    "uri-reference": _URI_REFERENCE,
    "iri-reference": _URI_REFERENCE,
    "uriref": _URI_REFERENCE,
    "uri-template": _URI_TEMPLATE,
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9][0-9]*)(?:\#|{_POINTER})",
    "byte": r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
}
"""Format to expression, which stands for the whole string."""

NUMBERS: dict[str, tuple[int, int] | None] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "float": None,
    "double": None,
    "number": None,
}
"""Format to least and greatest value, None where any number will do."""

ANNOTATIONS = frozenset({"password", "text", "textarea", "binary", "string", "markdown", "html", ""})
"""Formats that say how a value is shown or used: any string has them."""
