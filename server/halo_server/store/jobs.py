"""The durable queue: what a request leaves to be done later, in the table `jobs`.

A job is added in the transaction of what makes it necessary, so that neither is there without the other. Nothing stays open
while it runs: it is taken under a lease in one transaction, worked on outside, and finished in another, in which only who
holds the lease changes anything. It runs at least once. This changes when the way work is handed out does.
"""

from collections.abc import Collection, Mapping
from typing import Any

import orjson
from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select, update

from halo_server.domain import JSON, Instant, Job, Scope
from halo_server.store.store import Transaction
from halo_server.store.tables import jobs, scopes

__all__ = [
    "LEASE_MS",
    "MOST_ATTEMPTS",
    "add",
    "backoff_ms",
    "count",
    "extend",
    "fail",
    "finish",
    "is_due",
    "let_go",
    "owes",
    "take",
]

LEASE_MS = 300_000
"""A job not finished, extended or let go of after this long is anybody's again: longer than any one step of its work."""

MOST_ATTEMPTS = 48
"""After this many attempts a job is dead: about a day, if each of them fails."""

_FIRST_MS = 2_000
_MOST_MS = 3_600_000


def add(
    tx: Transaction,
    scope: Scope,
    kind: str,
    payload: Mapping[str, JSON],
    now: Instant,
    *,
    delay_ms: int = 0,
) -> None:
    """Promise the work, due after `delay_ms`; once, however often it is asked for before it begins.

    The payload says what it is about by ids, never by what anybody said. A dead job like it is forgotten: this is its new
    chance.
    """
    tx.lock(scope)
    alike = _alike(scope, kind, payload)
    tx.connection.execute(delete(jobs).where(alike, jobs.c.dead))
    if tx.connection.execute(select(jobs.c.id).where(alike, jobs.c.lease.is_(None))).first():
        return
    row = {
        "kind": kind,
        "scope_id": scope.id,
        "payload": _dump(payload),
        "attempts": 0,
        "due_at": now + delay_ms,
        "dead": False,
        "created_at": now,
    }
    tx.connection.execute(insert(jobs).values(row))


def owes(tx: Transaction, scope: Scope, kind: str, payload: Mapping[str, JSON]) -> bool:
    """Return whether the work was promised and is not done yet."""
    alive = and_(_alike(scope, kind, payload), ~jobs.c.dead)
    return tx.connection.execute(select(jobs.c.id).where(alive)).first() is not None


def is_due(tx: Transaction, kinds: Collection[str], now: Instant) -> bool:
    """Return whether there is something to take."""
    return tx.connection.execute(select(jobs.c.id).where(_due(kinds, now)).limit(1)).first() is not None


def take(tx: Transaction, kinds: Collection[str], lease: str, now: Instant) -> Job | None:
    """Take the longest due job of these kinds for `LEASE_MS`, or None; `lease` names this taking alone.

    The attempt counts from here on: a job whose takers never came back, `MOST_ATTEMPTS` times, probably ended them. It is
    dead.
    """
    lost = and_(_due(kinds, now), jobs.c.attempts >= MOST_ATTEMPTS)
    tx.connection.execute(update(jobs).where(lost).values(dead=True, failure="lost", **_FREE))
    due = (
        select(jobs, scopes.c.project, scopes.c.end_user)
        .join(scopes, scopes.c.id == jobs.c.scope_id)
        .where(_due(kinds, now))
        .order_by(jobs.c.due_at, jobs.c.id)
        .limit(1)
        .with_for_update(of=jobs, skip_locked=True)  # SQLite has one writer and ignores it
    )
    row = tx.connection.execute(due).one_or_none()
    if row is None:
        return None
    attempts = row.attempts + 1
    held = {"lease": lease, "leased_until": now + LEASE_MS, "attempts": attempts}
    tx.connection.execute(update(jobs).where(jobs.c.id == row.id).values(held))
    scope = Scope(row.project, row.end_user)
    return Job(row.id, row.kind, scope, orjson.loads(row.payload), attempts, lease)


def finish(tx: Transaction, job: Job) -> bool:
    """End the job; return whether it was still this taker's, without which the work must not be written."""
    return bool(tx.connection.execute(delete(jobs).where(_held(job))).rowcount)


def extend(tx: Transaction, job: Job, now: Instant) -> bool:
    """Keep the job for another `LEASE_MS`; return whether it was still this taker's."""
    longer = update(jobs).where(_held(job)).values(leased_until=now + LEASE_MS)
    return bool(tx.connection.execute(longer).rowcount)


def let_go(tx: Transaction, job: Job) -> None:
    """Give the job back undone, as if it had not been taken."""
    free = {**_FREE, "attempts": job.attempts - 1}
    tx.connection.execute(update(jobs).where(_held(job)).values(free))


def fail(tx: Transaction, job: Job, code: str, now: Instant, *, jitter: float, final: bool = False) -> None:
    """Put the job off, or bury it if this was its last attempt or `final`; nothing, if it is another's by now.

    The code says why in one of our words; `jitter` is a number in [0, 1), at random.
    """
    tx.lock(job.scope)
    alike = and_(_alike(job.scope, job.kind, job.payload), jobs.c.lease.is_(None), ~jobs.c.dead)
    if tx.connection.execute(select(jobs.c.id).where(alike)).first():
        finish(tx, job)  # asked for again meanwhile: that one does it
        return
    failed = {
        **_FREE,
        "failure": code,
        "dead": final or job.attempts >= MOST_ATTEMPTS,
        "due_at": now + backoff_ms(job.attempts, jitter),
    }
    tx.connection.execute(update(jobs).where(_held(job)).values(failed))


def count(tx: Transaction) -> tuple[int, int]:
    """Return how many jobs wait or run, and how many are dead."""
    counted = select(jobs.c.dead, func.count().label("many")).group_by(jobs.c.dead)
    found = {row.dead: row.many for row in tx.connection.execute(counted)}
    return found.get(False, 0), found.get(True, 0)


def backoff_ms(attempts: int, jitter: float) -> int:
    """Return how long to wait after that many attempts.

    Source:
        "Full jitter", Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015: evenly at random from
        none to the exponential bound, so that those who failed together do not come back together.
    """
    return int(jitter * min(_MOST_MS, _FIRST_MS * 2 ** min(attempts - 1, 30)))


_FREE = {"lease": None, "leased_until": None}


def _due(kinds: Collection[str], now: Instant) -> ColumnElement[bool]:
    free = or_(jobs.c.leased_until.is_(None), jobs.c.leased_until <= now)
    return and_(~jobs.c.dead, jobs.c.due_at <= now, free, jobs.c.kind.in_(sorted(kinds)))


def _held(job: Job) -> ColumnElement[bool]:
    return and_(jobs.c.id == job.id, jobs.c.lease == job.lease)


def _alike(scope: Scope, kind: str, payload: Mapping[str, JSON]) -> ColumnElement[bool]:
    return and_(jobs.c.scope_id == scope.id, jobs.c.kind == kind, jobs.c.payload == _dump(payload))


def _dump(payload: Mapping[str, Any]) -> str:
    return orjson.dumps(payload, option=orjson.OPT_SORT_KEYS).decode()
