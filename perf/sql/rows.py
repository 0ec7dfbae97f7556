"""Makes the files that the opponents load from. Runs in the environment of requirements.txt; JSON in, JSON out.

Asked: {"data", "limit" (rows, or null), "folder"}. Written: the rows as a binary COPY file, whole and in two halves, and
as raw little-endian float32; the queries as a binary COPY file. The SHA-256 of the raw rows says what they are.
"""

import hashlib
import json
import os
import struct
import sys

import numpy

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)


def read(path):
    """Base and queries of an ann-benchmarks file, or of a directory made by `annvil dataset generate`."""
    if os.path.isdir(path):
        return [numpy.load(os.path.join(path, name)) for name in ("base.npy", "queries.npy")]
    import h5py

    with h5py.File(path) as file:
        return [file["train"][:], file["test"][:]]


def copy_bytes(vectors, first=0):
    """Rows (id bigint, v vector) as PostgreSQL's binary COPY; pgvector sends dimension, zero, big-endian floats."""
    rows, dim = vectors.shape
    size = 4 + 4 * dim
    kind = numpy.dtype([("fields", ">i2"), ("eight", ">i4"), ("id", ">i8"), ("size", ">i4"), ("dim", ">i2"), ("zero", ">i2"),
                        ("v", ">f4", (dim,))])
    table = numpy.zeros(rows, kind)
    table["fields"], table["eight"], table["id"] = 2, 8, numpy.arange(first, first + rows)
    table["size"], table["dim"], table["v"] = size, dim, vectors
    return HEADER + table.tobytes() + struct.pack(">h", -1)


def main():
    """See the module."""
    asked = json.load(sys.stdin)
    base, queries = (numpy.ascontiguousarray(part, dtype="<f4") for part in read(asked["data"]))
    base = base[: asked["limit"]]
    os.makedirs(asked["folder"], exist_ok=True)
    half = len(base) // 2
    files = {
        "rows": copy_bytes(base), "half-0": copy_bytes(base[:half]), "half-1": copy_bytes(base[half:], half),
        "raw": base.tobytes(), "queries": copy_bytes(queries),
    }
    paths = {}
    for name, content in files.items():
        paths[name] = os.path.join(asked["folder"], name)
        with open(paths[name], "wb") as file:
            file.write(content)
    numpy.save(os.path.join(asked["folder"], "queries.npy"), queries)
    json.dump({"files": paths | {"vectors": os.path.join(asked["folder"], "queries.npy")}, "rows": len(base), "dim": base.shape[1],
               "queries": len(queries), "sha256": hashlib.sha256(files["raw"]).hexdigest()}, sys.stdout)


if __name__ == "__main__":
    main()
