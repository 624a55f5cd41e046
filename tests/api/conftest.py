"""Servers that no test has to close."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.door import Door


@pytest.fixture
def open_door(tmp_path: Path) -> Iterator[Callable[..., Door]]:
    doors: list[Door] = []

    def build(**settings: Any) -> Door:
        doors.append(Door(tmp_path / f"data-{len(doors)}", **settings))
        return doors[-1]

    yield build
    for door in doors:
        door.close()


@pytest.fixture
def door(open_door: Callable[..., Door]) -> Door:
    return open_door()
