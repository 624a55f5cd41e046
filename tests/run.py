"""What `make test` runs after `make check`: every part of the suite, each with its time, then the coverage of all of them."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Part:
    """A part of the suite and the seconds it may take on two cores."""

    name: str
    budget_s: int
    tests: tuple[str, ...]
    marks: str = "not postgres and not process"
    measured: bool = True


PARTS = (
    Part(
        "unit, API, conformance",
        600,
        ("tests/unit", "tests/conformance", "tests/api", "tests/sdk", "tests/contract", "tests/corpus"),
    ),
    Part("PostgreSQL", 480, ("tests/conformance",), "postgres"),
    Part("processes and faults", 720, ("tests/process", "tests/contract"), "process"),
    Part("provider SDKs and examples", 300, ("tests/examples", "tests/providers")),
    Part("every dialect and framework", 300, ("tests/compat",)),
    Part("quality", 480, ("tests/quality", "tests/eval"), measured=False),
)


def run(part: Part) -> int:
    """Run one part and print how long it took."""
    started = time.monotonic()
    tests = [path for path in part.tests if (ROOT / path).exists()]
    measure = ["-m", "coverage", "run", "--parallel-mode"] if part.measured else []
    command = [sys.executable, *measure, "-m", "pytest", "-q", "-rs", "-m", part.marks, *tests]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    took = time.monotonic() - started
    over = "" if took <= part.budget_s else f", over its budget of {part.budget_s} s"
    print(f"== {part.name}: {'passed' if code == 0 else 'FAILED'} in {took:.0f} s{over}", flush=True)
    return code or int(bool(over))


def main() -> int:
    """Run all parts; return 0 if every one passed and enough is covered."""
    for old in ROOT.glob(".coverage.*"):
        old.unlink()
    failed = [part.name for part in PARTS if run(part)]
    subprocess.run([sys.executable, "-m", "coverage", "combine", "--quiet"], cwd=ROOT, check=False)
    covered = subprocess.run([sys.executable, "-m", "coverage", "report"], cwd=ROOT, check=False).returncode
    if os.environ.get("HALO_REQUIRE_ALL") != "1":
        print("A part left out above names the package it wants; HALO_REQUIRE_ALL=1 makes that a failure.")
    print(
        f"== {'all passed' if not failed and not covered else 'FAILED: ' + ', '.join(failed or ['coverage'])}"
    )
    return int(bool(failed or covered))


if __name__ == "__main__":
    sys.exit(main())
