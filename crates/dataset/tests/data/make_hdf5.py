#!/usr/bin/env python3
"""Writes tests/data/hdf5/*.hdf5: one small data set stored in each way that h5py knows.

Needs numpy and h5py; the files are kept in the repository, so that the tests need neither. Number
(i, j) of `train` is ((8 i + j) 37 mod 101 - 50) / 4, of `test` the same with i + 100; integers are
not divided, unsigned ones not shifted. Every value is exact in float16.
"""
import os
import h5py
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hdf5")
ROWS, QUERIES, DIM, WIDTH = 60, 5, 8, 7


def numbers(start, rows, dtype):
    raw = (np.arange(start * DIM, (start + rows) * DIM).reshape(rows, DIM) * 37) % 101
    kind = np.dtype(dtype).kind
    if kind == "b":
        return raw % 2 == 1
    if kind == "u":
        return raw.astype(dtype)
    return (raw - 50).astype(dtype) if kind == "i" else ((raw - 50) / 4).astype(dtype)


def write(name, dtype="f4", attr="euclidean", ids="i4", libver=None, chunks=None, more=None, **storage):
    options = {"libver": libver} if libver else {}
    userblock = storage.pop("userblock", 0)
    with h5py.File(os.path.join(HERE, name + ".hdf5"), "w", userblock_size=userblock, **options) as f:
        if attr is not None:
            f.attrs["distance"] = attr
        train, test = numbers(0, ROWS, dtype), numbers(100, QUERIES, dtype)
        f.create_dataset("train", data=train, dtype=dtype, chunks=chunks, **storage)
        f.create_dataset("test", data=test, dtype=dtype)
        wide = [np.asarray(a, "f8") for a in (train, test)]
        d = np.sqrt(((wide[1][:, None] - wide[0][None]) ** 2).sum(-1))
        order = np.argsort(d, axis=1, kind="stable")[:, :WIDTH]
        f.create_dataset("neighbors", data=order.astype(ids))
        f.create_dataset("distances", data=np.take_along_axis(d, order, 1).astype("f4"))
        if more:
            more(f)


os.makedirs(HERE, exist_ok=True)
for libver in ("earliest", "latest", "v108", "v110"):
    write(f"contiguous_{libver}", libver=libver)
    write(f"gzip_{libver}", libver=libver, chunks=(7, 8), compression="gzip")
    write(f"split_rows_{libver}", libver=libver, chunks=(7, 3), compression="gzip", shuffle=True)
    write(f"unlimited_{libver}", libver=libver, chunks=(7, 8), maxshape=(None, 8))
    write(f"unlimited_both_{libver}", libver=libver, chunks=(7, 8), maxshape=(None, None), compression="gzip")
write("one_chunk", libver="latest", chunks=(60, 8), compression="gzip")
write("shuffle_fletcher", chunks=(16, 8), compression="gzip", shuffle=True, fletcher32=True)
write("lzf", chunks=(16, 8), compression="lzf", shuffle=True)
write("scaleoffset", "i4", chunks=(16, 8), scaleoffset=0)
for dtype in (">f4", ">f8", "f2", ">f2", "f8", "i1", "u1", "i2", ">i2", "i4", "i8", "u2", "u4", "u8", "?"):
    write("type_" + dtype.replace(">", "big_").replace("?", "bool"), dtype)
for ids in ("i8", ">i4", "u4", "u8", "i2"):
    write("ids_" + ids.replace(">", "big_"), ids=ids)
write("attr_fixed", attr=np.bytes_("euclidean"))
write("attr_fixed_padded", attr=np.array(b"euclidean", dtype="S32"))
write("attr_array", attr=np.array([b"euclidean"]))
write("attr_text_array", attr=["euclidean"])
write("attr_wrapped", attr="b'euclidean'")
write("attr_number", attr=2)
write("attr_many", more=lambda f: [f.attrs.__setitem__(f"x{i}", "y" * 500) for i in range(40)], libver="latest")
write("attr_vlen_latest", libver="latest")
write("userblock", userblock=512)


def odd(f):
    f.attrs["reference"] = f["train"].ref
    f.attrs["record"] = np.array((1, 2.0), dtype=[("a", "i4"), ("b", "f8")])
    f.attrs["dimension"], f.attrs["type"], f.attrs["point_type"] = 8, "dense", "float"
    g = f.create_group("more")
    g["train"] = np.zeros((3, 3))
    f["link"] = h5py.SoftLink("/nowhere")


write("neighbours_of_the_arrays", more=odd)


def special(name, attr, fill):
    with h5py.File(os.path.join(HERE, name + ".hdf5"), "w") as f:
        f.attrs["distance"] = attr
        fill(f)


def packed(f):
    raw = numbers(0, ROWS, "u4")[:, :5] % 2
    f.attrs["point_type"], f.attrs["dimension"], f.attrs["type"] = "bit", 10, "dense"
    bits = np.concatenate([raw, raw], 1).astype(bool)
    f["train"], f["test"] = np.packbits(bits, axis=1), np.packbits(bits[:QUERIES], axis=1)
    ham = (bits[:QUERIES, None] != bits[None]).mean(-1)
    f["neighbors"] = np.argsort(ham, 1, kind="stable")[:, :WIDTH]
    f["distances"] = np.sort(ham, 1)[:, :WIDTH]


def sparse(f):
    f.attrs["type"], f.attrs["point_type"], f.attrs["dimension"] = "sparse", "bit", 300
    f["train"], f["size_train"] = np.arange(90, dtype="i4"), np.full(30, 3, "i4")
    f["test"], f["size_test"] = np.arange(9, dtype="i4"), np.full(3, 3, "i4")


def never_written(f):
    f.create_dataset("train", (ROWS, DIM), "f4")
    f["test"] = numbers(100, QUERIES, "f4")


def huge_unwritten(f):
    f.create_dataset("train", (1 << 31, DIM), "f4", chunks=(1024, DIM))
    f["test"] = numbers(100, QUERIES, "f4")


def widths(f):
    f["train"], f["test"] = numbers(0, ROWS, "f4"), numbers(100, QUERIES, "f4")[:, :7]


def few_truth(f):
    f["train"], f["test"] = numbers(0, ROWS, "f4"), numbers(100, QUERIES, "f4")
    f["neighbors"] = np.zeros((3, WIDTH), "i4")


def float_truth(f):
    f["train"], f["test"] = numbers(0, ROWS, "f4"), numbers(100, QUERIES, "f4")
    f["neighbors"] = np.zeros((QUERIES, WIDTH), "f4")


def text_rows(f):
    f["train"], f["test"] = np.array([[b"a", b"b"]]), np.array([[b"a", b"b"]])


special("special_packed_bits", "hamming", packed)
special("special_sparse_dot", "dot", sparse)
special("special_never_written", "euclidean", never_written)
special("special_huge_unwritten", "euclidean", huge_unwritten)
special("special_widths", "euclidean", widths)
special("special_few_truth", "euclidean", few_truth)
special("special_float_truth", "euclidean", float_truth)
special("special_text", "euclidean", text_rows)
special("special_unknown_metric", "manhattan", lambda f: widths(f))
special("special_empty", "euclidean", lambda f: None)
