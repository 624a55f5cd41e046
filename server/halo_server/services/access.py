"""Who calls: API keys, made once, shown once, stored as a digest, and asked for on every request."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from halo_server.domain import Clock, Grant, Instant, NewId
from halo_server.errors import Forbidden
from halo_server.store.store import Store, Transaction

__all__ = ["Access"]

_PREFIX = "halo_"


@dataclass(frozen=True, slots=True)
class Access:
    """Makes, checks and revokes keys. A key is 256 random bits, so that a plain SHA-256 of it cannot be guessed back."""

    store: Store
    clock: Clock
    new_id: NewId

    def grant(self, key: str) -> Grant:
        """Return what the key allows.

        Raises:
            Forbidden: It is unknown, revoked or expired; which one is not told.
        """
        found = self.store.read(lambda tx: tx.grant(_digest(key)))
        if found is None or found.revoked_at is not None:
            raise Forbidden
        if found.expires_at is not None and found.expires_at <= self.clock():
            raise Forbidden
        return found

    def ping(self) -> None:
        """Return if the store answers.

        Raises:
            Unavailable: It does not.
        """
        self.store.read(lambda tx: tx.ping())

    def create(
        self,
        *,
        project: str | None = None,
        end_user: str | None = None,
        admin: bool = False,
        label: str = "",
        expires_at: Instant | None = None,
    ) -> tuple[str, Grant]:
        """Return a new key and what it allows; the project is made if absent. The key cannot be shown again."""
        key = _PREFIX + secrets.token_urlsafe(32)
        now = self.clock()
        grant = Grant(self.new_id(), project, end_user, admin, label, now, expires_at)

        def add(tx: Transaction) -> None:
            if project is not None:
                tx.add_project(project, now)
            tx.add_key(grant, _digest(key))

        self.store.write(add)
        return key, grant

    def embedded_key(self, project: str) -> str:
        """Return the key of the client in this process, the same at every start; project and key are made if absent."""
        secret = self.store.secret("embedded key")
        key = _PREFIX + hmac.new(secret, project.encode(), hashlib.sha256).hexdigest()
        now = self.clock()

        def add(tx: Transaction) -> None:
            tx.add_project(project, now)
            if tx.grant(_digest(key)) is None:
                tx.add_key(Grant(self.new_id(), project, label="embedded", created_at=now), _digest(key))

        self.store.write(add)
        return key

    def list(self) -> list[Grant]:
        """Return every key's grant, oldest first."""
        return self.store.read(lambda tx: tx.grants())

    def revoke(self, key_id: str) -> bool:
        """Make a key useless for every request from now on; return whether it was of use."""
        return self.store.write(lambda tx: tx.revoke_key(key_id, self.clock()))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
