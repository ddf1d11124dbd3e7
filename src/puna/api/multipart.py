"""Forms with files, as browsers and SDKs upload them: read from memory, so that there is no file to be left behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from puna.errors import InvalidRequest

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_PARTS = 256
MAX_VALUE = 1 << 20
"""Most bytes of a part that is no file."""


@dataclass(frozen=True)
class Upload:
    """A file in a form."""

    filename: str
    data: bytes


@dataclass
class Form:
    """What a form has, by name."""

    values: dict[str, list[str]] = field(default_factory=dict)
    """Names end in `[]` where a client writes a list so; it is left out here."""
    files: dict[str, Upload] = field(default_factory=dict)

    def first(self, name: str) -> str | None:
        """The first value of that name."""
        return next(iter(self.values.get(name, ())), None)


def is_multipart(content_type: str) -> bool:
    """Whether a body of this type is a form with files."""
    return content_type.partition(";")[0].strip().lower() == "multipart/form-data"


def parse_form(raw: bytes, content_type: str) -> Form:
    """The form in `raw`. Raises `InvalidRequest`."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not is_multipart(content_type) or not boundary:
        raise InvalidRequest("the body has to be multipart/form-data with a boundary, or JSON")
    reader = _Reader()
    try:
        parser = MultipartParser(boundary, reader.callbacks())
        parser.write(raw)
        parser.finalize()
    except FormParserError as error:
        raise InvalidRequest(f"the request body is not a valid form: {str(error)[:200]}") from error
    if not reader.complete:
        raise InvalidRequest("the request body is not a valid form: it ends too early")
    return reader.form


class _Reader:
    """Takes what the parser finds."""

    def __init__(self) -> None:
        self.form = Form()
        self.complete = False
        self._n_parts = 0
        self._headers: dict[bytes, bytes] = {}
        self._name = bytearray()
        self._value = bytearray()
        self._data: list[bytes] = []

    def callbacks(self) -> MultipartCallbacks:
        """By the parser's names."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
            "on_header_end": self._header,
            "on_part_data": lambda data, start, end: self._data.append(data[start:end]),
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def _begin(self) -> None:
        self._n_parts += 1
        if self._n_parts > MAX_PARTS:
            raise InvalidRequest(f"the form has more than {MAX_PARTS} parts")
        self._headers, self._data = {}, []

    def _header(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._value)
        self._name, self._value = bytearray(), bytearray()

    def _end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace").removesuffix("[]")
        filename = options.get(b"filename")
        data = b"".join(self._data)
        self._data = []
        if filename is not None:
            self.form.files.setdefault(name, Upload(filename.decode("utf-8", "replace"), data))
            return
        if len(data) > MAX_VALUE:
            raise InvalidRequest(f"Field '{name[:80]}': has over {MAX_VALUE} bytes", param=name[:80])
        try:
            value = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"Field '{name[:80]}': is not UTF-8 text", param=name[:80]) from error
        self.form.values.setdefault(name, []).append(value)

    def _finish(self) -> None:
        self.complete = True
