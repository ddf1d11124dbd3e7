"""`GET /`: one self-contained page to chat with the model."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter
from starlette.responses import Response

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_router() -> APIRouter:
    """The page's route."""
    router = APIRouter(include_in_schema=False)
    html = resources.files("puna.server").joinpath("page.html").read_bytes()

    @router.get("/", response_model=None)
    async def page() -> Response:
        """The page."""
        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-cache"}
        return Response(html, headers=headers, media_type="text/html")

    return router
