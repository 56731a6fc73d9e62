"""Pages whose snippets need an engine, torch or MLflow, with all of them run; `make test` has to leave them out."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from support.snippets import PAGES, ROOT, check_page, snippets

#: What `make test` has.
USUAL = {"polars", "sklearn"}


@pytest.mark.parametrize(
    "path",
    [page for page in PAGES if any(set(snippet.needs) - USUAL for snippet in snippets(page.read_text()))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_page(path, monkeypatch):
    """A process of its own, as a reader has: Spark keeps the folder it was started in, and MLflow its experiment."""
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        assert fresh.submit(check_page, path).result() == []
