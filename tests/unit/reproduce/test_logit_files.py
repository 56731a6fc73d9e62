"""Pickled logits: every protocol and NumPy's old names are read, and nothing in a file is run."""

import io
import pickle
import pickletools
import struct

import numpy as np
import pytest

from truecal.data import as_sample
from truecal.reproduce._data import LogitSplits, _ArraysOnly, load_logits

PARTS = ("val_logits", "val_labels", "test_logits", "test_labels")


def splits(dtype=np.float32, labels=np.int64):
    rng = np.random.default_rng(0)
    return (
        (rng.normal(size=(5, 3)).astype(dtype), rng.integers(3, size=5).astype(labels)),
        (rng.normal(size=(7, 3)).astype(dtype), rng.integers(3, size=7).astype(labels)),
    )


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content))
    return path


def assert_loaded(loaded, content):
    assert isinstance(loaded, LogitSplits)
    flat = [array for split in content for array in split]
    for name, array in zip(PARTS, flat, strict=True):
        values = getattr(loaded, name)
        assert type(values) is np.ndarray
        assert values.dtype == array.dtype
        np.testing.assert_array_equal(values, array.reshape(-1) if "labels" in name else array)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("module", [b"numpy._core", b"numpy.core"])
def test_every_protocol_and_the_names_of_numpy_1(tmp_path, protocol, module):
    content = splits()
    data = pickle.dumps(content, protocol)
    data = rename(data, module, protocol)
    assert module in data
    assert_loaded(load_logits(write(tmp_path / "logits.p", data)), content)


def rename(data, module, protocol):
    """Write NumPy's module name as version 1 or 2 does, with the lengths and frames that go with it."""
    old = b"numpy.core" if b"numpy.core" in data else b"numpy._core"
    if protocol < 4:
        return data.replace(old, module)
    out = bytearray()
    operations = list(pickletools.genops(data))
    ends = [position for _, _, position in operations[1:]] + [len(data)]
    for (operation, argument, start), end in zip(operations, ends, strict=True):
        if operation.name == "FRAME":
            continue
        if operation.name == "SHORT_BINUNICODE" and old in argument.encode():
            text = argument.encode().replace(old, module)
            out += b"\x8c" + struct.pack("B", len(text)) + text
        else:
            out += data[start:end]
    return bytes(out)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8", "<i2", "u1"])
@pytest.mark.parametrize("labels", ["?", "i1", "<u4", ">i8", "<f8"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_every_type_of_number_in_either_byte_order(tmp_path, dtype, labels, protocol):
    content = splits(dtype, labels)
    assert_loaded(load_logits(write(tmp_path / "logits.p", pickle.dumps(content, protocol))), content)


@pytest.mark.parametrize("protocol", [0, 3, 5])
def test_columns_first_strides_and_labels_in_one_column(tmp_path, protocol):
    (val_x, val_y), (x, y) = splits()
    content = [[np.asfortranarray(val_x), val_y[:, np.newaxis]], [x[::-1, ::2], y[::-1]]]
    assert_loaded(load_logits(write(tmp_path / "logits.p", pickle.dumps(content, protocol))), content)


def test_a_file_of_python_2(tmp_path):
    """As Python 2 writes it: text opcodes for the bytes, and old module names."""
    values = np.array([[0.25, -1.5]], dtype="<f4")

    def array(shape, code, data):
        return (
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n" + shape
            + b"cnumpy\ndtype\n(S'" + code + b"'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\n"
            + b"S" + repr(data)[1:].encode() + b"\ntb"
        )  # fmt: skip

    logits = array(b"(I1\nI2\nt", b"f4", values.tobytes())
    labels = array(b"(I1\nt", b"i8", np.array([1], dtype="<i8").tobytes())
    data = b"((" + logits + labels + b"t(" + logits + labels + b"tt."
    expected = ((values, np.array([1])),) * 2
    assert_loaded(load_logits(write(tmp_path / "logits.p", data)), expected)


def test_loaded_logits_go_straight_into_a_sample(tmp_path):
    loaded = load_logits(str(write(tmp_path / "logits.p", splits())))
    sample = as_sample(loaded.test_labels, loaded.test_logits, logits=True)
    assert sample.n == 7
    assert sample.target == "top label of 3 classes"


# --- Files that must be refused -------------------------------------------------------------------


class RunsAProgram:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return exec, (f"import pathlib; pathlib.Path({str(self.path)!r}).touch()",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_file_runs_nothing(tmp_path, protocol):
    proof = tmp_path / "proof"
    for content in (RunsAProgram(proof), (splits()[0], (splits()[1][0], RunsAProgram(proof)))):
        path = write(tmp_path / "logits.p", pickle.dumps(content, protocol))
        with pytest.raises(
            ValueError, match=r"logits\.p is not a pickle of number arrays: it holds .*\.exec"
        ):
            load_logits(path)
        assert not proof.exists()
    pickle.loads(path.read_bytes())  # the file is a real attack
    assert proof.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("numpy", "load"),
        ("numpy", "ndarray.tofile"),
        ("numpy", "memmap"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy._core.multiarray", "fromfile"),
        ("numpy", "_core.multiarray._reconstruct"),
        ("_codecs", "decode"),
        ("_codecs", "lookup"),
        ("truecal.reproduce._data", "Path"),
    ],
)
def test_only_five_names_are_known(module, name):
    with pytest.raises(ValueError, match=f"it holds {module}.{name}, and only arrays of numbers are loaded"):
        _ArraysOnly(io.BytesIO()).find_class(module, name)


@pytest.mark.parametrize("target", sorted(_ArraysOnly._STAND_INS))
def test_a_file_cannot_change_the_stand_ins(tmp_path, target):
    """BUILD sets attributes of what is on the stack; here of what stands for NumPy's own names."""
    module, name = target
    for state in (b"(dS'__defaults__'\n(I1\nts", b"(N(dS'__defaults__'\n(I1\ntst"):
        attack = f"c{module}\n{name}\n".encode() + state + b"b."
        with pytest.raises(ValueError, match=r"logits\.p"):
            load_logits(write(tmp_path / "logits.p", attack))
    content = splits()
    for protocol in (2, 5):
        path = write(tmp_path / "logits.p", pickle.dumps(content, protocol))
        assert_loaded(load_logits(path), content)


def test_numpys_own_types_are_never_touched(tmp_path):
    """`numpy.dtype('f8')` is shared by the whole process; a file must not set its byte order."""
    attack = b"cnumpy\ndtype\n(S'f8'\ntR(I3\nS'>'\nNNNI-1\nI-1\nI0\ntb."
    with pytest.raises(ValueError, match="It holds something else"):
        load_logits(write(tmp_path / "logits.p", attack))
    assert np.array([1.0]).tobytes() == struct.pack("=d", 1.0)


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize(
    "odd",
    [
        np.array([1, "a", None, 2, 3], dtype=object),
        np.array(["a"] * 5),
        np.zeros(5, dtype=[("x", float)]),
        np.zeros(5, dtype=complex),
        np.zeros(5, dtype="M8[s]"),
    ],
    ids=["objects", "strings", "records", "complex", "dates"],
)
def test_arrays_of_anything_but_numbers_are_refused(tmp_path, odd, protocol):
    (val_x, _), test = splits()
    path = write(tmp_path / "logits.p", pickle.dumps(((val_x, odd), test), protocol))
    with pytest.raises(ValueError, match=r"only (arrays of )?numbers are loaded"):
        load_logits(path)


LAYOUT = r"logits\.p must hold \(\(val_logits, val_labels\), \(test_logits, test_labels\)\)"


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"val": splits()[0], "test": splits()[1]},
        splits()[0],
        (*splits(), splits()[0]),
        ((*splits()[0], splits()[0][1]), splits()[1]),
        splits()[0][0],
        (([[1.0, 2.0]], [1]), ([[1.0, 2.0]], [1])),
        "abcd",
        (("ab", "cd"), ("ef", "gh")),
    ],
    ids=[
        "none",
        "empty",
        "dict",
        "one split",
        "three splits",
        "three parts",
        "array",
        "lists",
        "text",
        "texts",
    ],
)
def test_another_layout_is_refused(tmp_path, content):
    with pytest.raises(ValueError, match=LAYOUT + r", four arrays of numbers\. It holds something else"):
        load_logits(write(tmp_path / "logits.p", content))


def test_shapes_that_do_not_fit_are_named(tmp_path):
    (val_x, val_y), (x, y) = splits()
    for content, says in [
        (((val_x, val_y), (x, y[:-1])), r"\(7, 3\) with labels of shape \(6,\)"),
        (((val_x, val_y), (x[:, 0], y)), r"\(7,\) with labels of shape \(7,\)"),
        (((val_x, np.eye(3)[val_y]), (x, y)), r"\(5, 3\) with labels of shape \(5, 3\)"),
        (((val_y, val_x), (x, y)), r"\(5,\) with labels of shape \(5, 3\)"),
    ]:
        with pytest.raises(ValueError, match=LAYOUT + r"\. It holds logits of shape " + says):
            load_logits(write(tmp_path / "logits.p", content))


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path, protocol):
    data = pickle.dumps(splits(), protocol)
    for end in {0, 1, 2, 10, len(data) // 3, len(data) // 2, len(data) - 1}:
        with pytest.raises(ValueError, match=r"logits\.p is not a pickle of number arrays"):
            load_logits(write(tmp_path / "logits.p", data[:end]))


def test_bytes_too_few_for_the_shape_are_refused(tmp_path):
    data = pickle.dumps(splits(), 0)
    path = write(tmp_path / "logits.p", data.replace(b"(I5\nI3\nt", b"(I5000\nI3\nt"))
    assert path.read_bytes() != data
    with pytest.raises(ValueError, match="is not a pickle of number arrays"):
        load_logits(path)


def test_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        load_logits(tmp_path / "missing.p")
    for content in (b"hello, world", b"PK\x03\x04", b"\x93NUMPY\x01\x00"):
        with pytest.raises(ValueError, match="is not a pickle of number arrays"):
            load_logits(write(tmp_path / "logits.p", content))
