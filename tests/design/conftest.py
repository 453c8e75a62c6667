"""Fixtures that several tests of designs use."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    """A library whose arrays follow the array API standard."""
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")
