"""What `schemas/` must hold, from the code: `python -m tests.contract.schemas --write` after a change of the wire."""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from halo_sdk import Halo, Memory
from halo_sdk.dialects import DIALECTS
from halo_sdk.functions import FUNCTIONS
from halo_sdk.functions.base import SessionSource
from halo_server.api import wire
from halo_server.api.functions import DECLARATIONS
from halo_server.app import create_app, open_memory
from halo_server.config import Settings

ROOT = Path(__file__).parents[2] / "schemas"
_MESSAGES = (
    wire.FunctionCall,
    wire.FunctionArguments,
    wire.FunctionAnswer,
    wire.CaptureRequest,
    wire.CaptureAnswer,
    wire.RetrieveRequest,
    wire.RetrieveAnswer,
    wire.DeleteRequest,
    wire.DeleteAnswer,
    wire.ErrorAnswer,
)

_PROFILES: tuple[tuple[str, SessionSource, bool], ...] = (
    ("model", "model", False),
    ("app", "app", False),
    ("app-strict", "app", True),
)


def expected() -> dict[str, Any]:
    """Return path below `schemas/` -> content."""
    files = {f"functions/{declaration['name']}.json": declaration for declaration in DECLARATIONS}
    files |= {
        f"dialects/{dialect}/{name}.json": _memory(session).tools(dialect, strict=strict)
        for dialect in DIALECTS
        for name, session, strict in _PROFILES
    }
    files |= {f"halo/{model.__name__}.json": model.model_json_schema(by_alias=True) for model in _MESSAGES}
    with tempfile.TemporaryDirectory() as directory:
        opened = open_memory(Settings(data=Path(directory), embedder="hashing"))
        files["openapi.json"] = create_app(opened).openapi()
        opened.close()
    return files


def _memory(session: SessionSource) -> Memory:
    return Halo("key", project_key="project").for_user("end user", tools=tuple(FUNCTIONS), session=session)


def text(value: Any) -> str:
    """Return the file's exact text."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files, or say which differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    for name, value in expected().items():
        path = ROOT / name
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(value), encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text(value):
            raise SystemExit(f"{path} differs: make schemas")


if __name__ == "__main__":
    main()
