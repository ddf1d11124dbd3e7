"""Cohere's package, whose ranking others copy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.live import Live, need


@pytest.mark.parametrize("version", [1, 2])
def test_ranking(ranking: Live, version: int) -> None:
    cohere = need("cohere")
    client: Any = (cohere.ClientV2 if version == 2 else cohere.Client)(api_key="x", base_url=ranking.root)
    with ranking.turns(f"POST /v{version}/rerank 200"):
        reply = client.rerank(model="m", query="q", documents=["a", "c", "b"], top_n=2)
    assert [one.index for one in reply.results] == [1, 2]
    assert reply.results[0].relevance_score > reply.results[1].relevance_score and reply.id


def test_what_is_wrong_is_told(ranking: Live) -> None:
    cohere = need("cohere")
    client: Any = cohere.ClientV2(api_key="x", base_url=ranking.root)
    with ranking.turns("POST /v2/rerank 400"), pytest.raises(cohere.core.api_error.ApiError) as failure:
        client.rerank(model="m", query="q", documents=["a" * 100])
    assert failure.value.status_code == 400
