"""Pages whose snippets need an engine, torch or MLflow, with all of them run; `make test` has to leave them out."""

import pytest

from support.snippets import PAGES, ROOT, check_page, snippets

#: What `make test` has.
USUAL = {"polars", "sklearn"}


@pytest.mark.filterwarnings("ignore")  # MLflow, Dask and Spark warn of their own future
@pytest.mark.parametrize(
    "path",
    [page for page in PAGES if any(set(snippet.needs) - USUAL for snippet in snippets(page.read_text()))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_page(path):
    assert check_page(path) == []
