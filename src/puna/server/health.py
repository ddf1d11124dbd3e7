"""`/health`: whether requests are taken."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from puna.api.replies import Json
from puna.service.service import Service


def health_router(service: Service) -> APIRouter:
    """The health routes."""
    router = APIRouter(tags=["server"])

    async def health() -> Response:
        """`{"status":"ok"}` when requests are taken, if only into the queue; 503 while loading or after a failure."""
        service.check_ready()
        return Json(b'{"status":"ok"}')

    for path in ("/health", "/v1/health"):
        router.add_api_route(path, health, methods=["GET"], response_model=None)
    return router
