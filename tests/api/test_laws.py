"""Laws that hold after any sequence of captures, retrievals and deletions by two tenants at once."""

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from tests.api.door import API, Door

TENANTS = {"north": "canarynorth", "south": "canarysouth"}
USERS = ("u", "a/b")
WORDS = ("tulips", "bicycle", "violin", "report", "京都")

tenants = st.sampled_from(sorted(TENANTS))
users = st.sampled_from(USERS)
words = st.sampled_from(WORDS)


class Memories(RuleBasedStateMachine):
    """Two projects with the same end users; `held` is what each should remember: id -> word, oldest first."""

    exchanges = Bundle("exchanges")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.door = Door(self.directory / "data")
        self.keys = {tenant: self.door.new_key(tenant) for tenant in TENANTS}
        self.held = {(tenant, user): {} for tenant in TENANTS for user in USERS}
        self.captures = 0

    def teardown(self) -> None:
        self.door.close()
        shutil.rmtree(self.directory)

    def who(self, tenant, user):
        return {"project": tenant, "user": user, "key": self.keys[tenant]}

    def delete(self, tenant, **target):
        body = {"projectKey": tenant, **target}
        return self.door.send("POST", f"{API}/delete", body, key=self.keys[tenant])

    @rule(target=exchanges, tenant=tenants, user=users, said=st.lists(words, min_size=1, max_size=3))
    def capture(self, tenant, user, said):
        self.captures += 1
        key, text = str(self.captures), f"{' '.join(said)} {TENANTS[tenant]}"
        first = self.door.capture(text, idempotency_key=key, **self.who(tenant, user))
        again = self.door.capture(text, idempotency_key=key, **self.who(tenant, user))
        assert {**again, "requestId": ""} == {**first, "requestId": "", "duplicate": True}
        self.held[tenant, user][first["rawEntryId"]] = said[0]
        return (tenant, user, first["rawEntryId"])

    @rule(tenant=tenants, user=users, word=st.none() | words, limit=st.integers(1, 4))
    def retrieve(self, tenant, user, word, limit):
        who, held = self.who(tenant, user), self.held[tenant, user]
        answers = [
            self.door.call(word, limit=limit, **who),
            self.door.retrieve(word, limit=limit, **who),
        ]
        for answer in answers:
            found = [entry["id"] for entry in answer["rawEntries"]]
            assert set(found) <= set(held)
            assert len(found) == min(limit, len(held))
            assert word is not None or found == list(reversed(held))[:limit]
            self.only_own(tenant, answer)
        assert answers[0]["selectedTopicKeys"] == answers[1]["selectedTopicKeys"]

    @rule(exchange=consumes(exchanges))
    def delete_exchange(self, exchange):
        tenant, user, exchange_id = exchange
        there = self.held[tenant, user].pop(exchange_id, None) is not None
        assert self.delete(tenant, target="raw", rawEntryId=exchange_id).status_code == (
            202 if there else 404
        )

    @rule(exchange=exchanges)
    def delete_anothers(self, exchange):
        tenant, _, exchange_id = exchange
        [other] = set(TENANTS) - {tenant}
        assert self.delete(other, target="raw", rawEntryId=exchange_id).status_code == 404

    @rule(tenant=tenants, user=users, place=st.integers(0, 5), include_raw=st.booleans())
    def delete_topic(self, tenant, user, place, include_raw):
        topics = self.topics(tenant, user)
        if not topics:
            return
        topic = topics[place % len(topics)]
        listed = self.raw(tenant, user)
        inside = [entry["id"] for entry in listed if entry["topic"]["topicKey"] == topic["topicKey"]]
        answer = self.delete(tenant, target="topic", topicId=topic["topicId"], includeRaw=include_raw)
        counts = answer.json()["counts"]
        assert (answer.status_code, counts["topics"]) == (202, 1)
        assert counts["exchanges"] == (len(inside) if include_raw else 0)
        if include_raw:
            for exchange_id in inside:
                del self.held[tenant, user][exchange_id]

    @rule(target=exchanges, tenant=tenants, user=users)
    def delete_scope(self, tenant, user):
        held = self.held[tenant, user]
        answer = self.delete(tenant, target="scope", endUserKey=user)
        assert answer.status_code in ((202,) if held else (202, 404))
        assert answer.status_code == 404 or answer.json()["counts"]["exchanges"] == len(held)
        held.clear()
        return multiple()

    @invariant()
    def everything_held_is_listed_and_counted(self):
        for (tenant, user), held in self.held.items():
            listed, topics = self.raw(tenant, user), self.topics(tenant, user)
            assert [entry["id"] for entry in listed] == list(reversed(held))
            sizes = {}
            for entry in listed:
                sizes[entry["topic"]["topicKey"]] = sizes.get(entry["topic"]["topicKey"], 0) + 1
            assert {topic["topicKey"]: topic["rawCount"] for topic in topics} == sizes
            sources = {source for topic in topics for source in topic["summarySources"]}
            assert sources <= set(held)
            self.only_own(tenant, [listed, topics])

    def raw(self, tenant, user):
        return self.listed(tenant, user, "raw")["rawEntries"]

    def topics(self, tenant, user):
        return self.listed(tenant, user, "topics")["topics"]

    def listed(self, tenant, user, name):
        path = f"{API}/projects/{tenant}/scopes/{user.replace('/', '%2F')}/{name}?limit=100"
        return self.door.send("GET", path, key=self.keys[tenant]).json()

    def only_own(self, tenant, answer):
        [foreign] = set(TENANTS.values()) - {TENANTS[tenant]}
        assert foreign not in repr(answer)


TestMemories = Memories.TestCase
TestMemories.settings = settings(
    max_examples=15,
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
