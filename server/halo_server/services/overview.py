"""The overall summary of a scope, kept current by everything that changes its topics."""

from halo_server import clustering
from halo_server.domain import Scope
from halo_server.store.store import Transaction

__all__ = ["renew_summary"]

_TOPICS = 12  # the summary holds fewer sentences than this


def renew_summary(tx: Transaction, scope: Scope) -> None:
    """Write the summary anew from the scope's largest enabled topics."""
    tx.put_summary(scope, clustering.overall(tx.largest_topics(scope, _TOPICS)))
