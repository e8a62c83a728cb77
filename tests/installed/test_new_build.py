"""A C library is built from nothing, without Python, handlers and tests, as a packager builds it."""

from __future__ import annotations

import pytest

from c_library import install, new_build

LIBRARIES = {"layout": "layout.h", "slmp": "slmp.h", "ethernet": "ethernet.h"}


@pytest.mark.slow
@pytest.mark.parametrize("component", LIBRARIES)
def test_a_library_is_built_from_nothing(component, tmp_path_factory):
    prefix = install(component, new_build(tmp_path_factory), tmp_path_factory)
    assert (prefix / "include/spinloom" / LIBRARIES[component]).is_file()
    assert list(prefix.glob(f"lib*/**/libspinloom_{component}.so"))
