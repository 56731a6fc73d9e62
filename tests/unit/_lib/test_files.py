import os
import stat

import polars as pl
import pytest

from truecal._lib.files import whole_file, write_text


def test_a_file_is_written_with_the_usual_permissions(tmp_path):
    write_text(tmp_path / "a.txt", "ä\n")
    assert (tmp_path / "a.txt").read_bytes() == "ä\n".encode()
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~umask


def test_what_was_there_stays_when_writing_fails(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half():
        with whole_file(path) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="/dev/null is a POSIX file")
def test_a_device_is_written_to_and_not_replaced():
    write_text("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)  # noqa: PTH116


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_text(tmp_path / "nowhere" / "a.txt", "")


def test_bytes(tmp_path):
    with whole_file(tmp_path / "a", "wb") as file:
        file.write(b"\0\1")
    assert (tmp_path / "a").read_bytes() == b"\0\1"


@pytest.mark.parametrize(
    "error",
    [
        OSError("No space left on device (os error 28)"),
        pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)"),
    ],
)
def test_an_error_in_the_words_of_a_library_names_the_file(error, tmp_path):
    def fail():
        with whole_file(tmp_path / "a", "wb"):
            raise error

    with pytest.raises(OSError, match="No space left on device") as caught:
        fail()
    assert (caught.value.errno, caught.value.filename) == (28, str(tmp_path / "a"))
    assert caught.value.strerror == "No space left on device"
