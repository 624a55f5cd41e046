"""The command line `halo`: serve, the keys that open the doors, and how well it remembers."""

import json
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import orjson
import typer
import uvicorn
from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table
from threadpoolctl import threadpool_limits

from halo_server.api.body import identifier
from halo_server.app import create_app, open_access, open_memory
from halo_server.config import Settings
from halo_server.errors import HaloError, StartError
from halo_server.evaluation import FIGURES, Replay, Report, evaluate, steps
from halo_server.labelled import LabelledSet, read_set
from halo_server.log import to_stderr
from halo_server.services.access import Access

__all__ = ["cli", "main"]

cli = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    help="HALO: long-term memory of end users for LLM applications.",
)
keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke API keys.")
cli.add_typer(keys, name="keys")

_DRAIN_S = 15
_BACKLOG = 2048
_TABLE_WIDTH = 150
DataOption = Annotated[Path | None, typer.Option("--data", help="The one directory that holds all data.")]


@cli.command()
def serve(
    data: DataOption = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = None,
) -> None:
    """Serve the memory in a data directory.

    Example: halo serve --data ./halo-data --port 8765
    """
    with _one_line():
        settings = _settings(data=data, host=host, port=port)
        memory = open_memory(
            settings
        )  # before the port: that the directory is in use explains that the port is
        try:
            listener = _listen(settings.host, settings.port)
        except StartError:
            memory.close()
            raise
    to_stderr(settings.log_level)
    # A small matrix product spread over threads costs ten times itself when requests run beside each other (measured). This
    # process is ours alone; inside an application's (`inprocess.py`) its threads are its own affair.
    threadpool_limits(settings.compute_threads, user_api="blas")
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{name}:{listener.getsockname()[1]}"
    typer.echo(f"HALO serves {settings.data} on {address}")
    if not memory.services.access.list():
        typer.echo(f"There is no key yet: halo keys create --data {settings.data} --project my-project")
    config = uvicorn.Config(
        create_app(memory),
        http="h11",  # refuses requests without Host and giant headers, which httptools accepts (measured)
        loop="asyncio",
        proxy_headers=False,  # a peer must not choose its own address
        server_header=False,
        access_log=False,  # it prints query strings; `api/edge.py` logs without
        log_config=None,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    # uvicorn finishes what has begun and then sends the signal again: being asked to end is no failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.Server(config).run(sockets=[listener])


@keys.command("create")
def create_key(
    data: DataOption = None,
    project: Annotated[str | None, typer.Option(help="The key's project; made if absent.")] = None,
    end_user: Annotated[str | None, typer.Option(help="Bind the key to this one end user.")] = None,
    *,
    admin: Annotated[
        bool, typer.Option("--admin", help="A key for projects and metrics, not for memory.")
    ] = False,
    label: Annotated[str, typer.Option(help="A note for people.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a key and print it; it cannot be shown again.

    Example: halo keys create --project customer-product
    """
    if admin == (project is not None) or (end_user is not None and project is None):
        raise typer.BadParameter("give --project, with --end-user or without, or --admin alone")
    with _one_line(), _access(data, make=True) as access:
        if project is not None:
            identifier(project, "projectKey")
        if end_user is not None:
            identifier(end_user, "endUserKey")
        key, grant = access.create(project=project, end_user=end_user, admin=admin, label=label)
    typer.echo(json.dumps({"key": key, "id": grant.key_id}) if as_json else key)


@keys.command("list")
def list_keys(
    data: DataOption = None, *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List keys by their ids; the keys themselves are not kept.

    Example: halo keys list --json
    """
    with _one_line(), _access(data) as access:
        grants = access.list()
    rows = [
        {
            "id": grant.key_id,
            "project": grant.project,
            "endUser": grant.end_user,
            "admin": grant.admin,
            "label": grant.label,
            "revoked": grant.revoked_at is not None,
        }
        for grant in grants
    ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    # An id that is cut cannot be revoked, so the id keeps its width and the notes give way.
    texts = [Column(name, overflow="fold") for name in ("project", "end user", "admin", "label", "revoked")]
    table = Table(Column("id", no_wrap=True, min_width=32), *texts, box=None)
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console().print(table)


@keys.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(help="Its id, from `halo keys list`.")], data: DataOption = None
) -> None:
    """Make a key useless at once, also for a running server.

    Example: halo keys revoke 2f1c…
    """
    with _one_line(), _access(data) as access:
        if not access.revoke(key_id):
            raise StartError("There is no live key of that id; see: halo keys list")
    typer.echo("revoked")


@cli.command("eval")
def evaluate_sets(
    files: Annotated[
        list[Path], typer.Argument(help="Labelled sets; the format is in `halo_server.labelled`.")
    ],
    rows: Annotated[
        Path | None, typer.Option(help="Write each question's figures there, JSON lines.")
    ] = None,
    at_least: Annotated[
        list[str] | None, typer.Option(help="R@10=0.8: end with 1 if a set's overall figure is lower.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    bulk: Annotated[
        bool, typer.Option(help="Capture a conversation at once, or one exchange after another.")
    ] = True,
) -> None:
    """Measure how well the messages that answer labelled questions are found, in a directory made for it.

    Example: halo eval questions.json --at-least R@10=0.8
    """
    floors = dict(map(_floor, at_least or ()))
    with _one_line():
        sets = [read_set(file) for file in files]
        reports = _reports(sets, bulk=bulk, quiet=as_json)
        if rows is not None:
            lines = (orjson.dumps({"set": one.name, **row.plain()}) for one in reports for row in one.rows)
            rows.write_bytes(b"".join(line + b"\n" for line in lines))
    if as_json:
        measured = [{"name": one.name, "groups": [group.plain() for group in one.groups]} for one in reports]
        typer.echo(json.dumps(measured, ensure_ascii=False))
    else:
        for one in reports:
            Console(width=_TABLE_WIDTH).print(_figures(one))
    missed = [
        f"{one.name}: {figure} is {one.overall.figures[figure].mean:.3f}, below {floor:g}."
        for one in reports
        for figure, floor in floors.items()
        if one.overall.figures[figure].mean < floor
    ]
    for line in missed:
        typer.echo(line, err=True)
    if missed:
        raise typer.Exit(1)


def _floor(option: str) -> tuple[str, float]:
    figure, _, value = option.partition("=")
    if figure not in FIGURES:
        raise typer.BadParameter(f"name a figure of {', '.join(FIGURES)}, as in R@10=0.8")
    try:
        floor = float(value)
    except ValueError:
        floor = -1.0
    if not 0 <= floor <= 1:
        raise typer.BadParameter("a figure is a number from 0 to 1, as in R@10=0.8")
    return figure, floor


def _reports(sets: Sequence[LabelledSet], *, bulk: bool, quiet: bool) -> list[Report]:
    """Run each set in a directory of its own, and show on the terminal's error stream how far it is."""
    shown = Progress(console=Console(stderr=True), transient=True, disable=quiet)
    reports = []
    with shown:
        for labelled in sets:
            task = shown.add_task(labelled.name, total=steps(labelled))
            with TemporaryDirectory(prefix="halo-eval-") as made:
                memory = open_memory(_settings(data=Path(made)))
                services = memory.services
                replay = Replay(services.settings, memory.store, services.capture, services.retrieve)
                try:
                    reports.append(
                        evaluate(labelled, replay, bulk=bulk, advance=partial(shown.advance, task))
                    )
                finally:
                    memory.close()
    return reports


def _figures(report: Report) -> Table:
    overall = report.overall
    by_chance = ", ".join(f"{name} {100 * value:.1f}" for name, value in overall.chance.items())
    title = f"{report.name}: percent, 95 % intervals; by chance {by_chance}; {overall.ms:.1f} ms a question"
    table = Table(
        "category", "questions", *FIGURES, "chance R@10", "ms", title=title, title_justify="left", box=None
    )
    for group in report.groups:
        figures = (
            f"{100 * one.mean:.1f} ({100 * one.low:.0f}-{100 * one.high:.0f})"
            for one in group.figures.values()
        )
        chance, ms = f"{100 * group.chance['R@10']:.1f}", f"{group.ms:.1f}"
        table.add_row(group.category, str(group.questions), *figures, chance, ms)
    return table


def main() -> None:
    """Run the command line."""
    cli()


def _settings(**given: object) -> Settings:
    """Return the environment's settings with those given on the command line.

    Raises:
        StartError: One of them cannot be; the line names it and not its value.
    """
    try:
        return Settings.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        raise StartError(f"HALO_{str(wrong['loc'][0]).upper()}: {wrong['msg']}.") from None


@contextmanager
def _access(data: Path | None, *, make: bool = False) -> Iterator[Access]:
    directory = _settings(data=data).data
    if not make and not (directory / "halo.db").exists():
        raise StartError(
            f"There is no HALO data in {directory}; name its directory with --data or HALO_DATA."
        )
    access, store = open_access(directory)
    try:
        yield access
    finally:
        store.close()


@contextmanager
def _one_line() -> Iterator[None]:
    """End the command with the error's one line instead of a traceback."""
    try:
        yield
    except (StartError, HaloError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except OSError as error:  # a directory that is a file, or not ours to write in
        typer.echo(f"Cannot use {error.filename}: {error.strerror}.", err=True)
        raise typer.Exit(1) from None


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's delay off only on sockets that name their protocol; without it an answer takes 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)  # from here on nobody is refused: who reads our line may connect at once
    except OSError as error:
        listener.close()
        raise StartError(f"Cannot listen on {host} port {port}: {error.strerror}.") from None
    return listener


if __name__ == "__main__":
    main()
