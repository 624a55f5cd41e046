"""How long `import halo_sdk` takes beyond httpx and pydantic: the least of ten fresh processes, at most 0.15 s.

Compiled, as an installer leaves it. Without pydantic's plugins: the first model of a process looks for them in every package
installed, which are not ours to count.
"""

import os
import subprocess
import sys

_MOST_S = 0.15
_ENVIRONMENT = {**os.environ, "PYDANTIC_DISABLE_PLUGINS": "__all__"}
_ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)


def seconds(program: str) -> float:
    """Return the least processor time of ten runs: what other processes do only adds to it."""
    times = []
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", program], env=_ENVIRONMENT) as process:
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
        times.append(used.ru_utime + used.ru_stime)
    return min(times)


def main() -> None:
    """Print the figure; fail above the bound."""
    beyond = seconds("import httpx, pydantic, halo_sdk") - seconds("import httpx, pydantic")
    print(f"import halo_sdk: {beyond:.3f} s beyond httpx and pydantic (at most {_MOST_S})")
    if beyond > _MOST_S:
        raise SystemExit("too slow")


if __name__ == "__main__":
    main()
