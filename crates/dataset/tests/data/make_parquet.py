#!/usr/bin/env python3
"""Writes tests/data/parquet/*.parquet: the same small vectors in each way that pyarrow writes lists.

Needs numpy and pyarrow; the files are kept in the repository, so that the tests need neither. Number
(i, j) is ((4 i + j) 37 mod 101 - 50), halved for floats.
"""
import os
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parquet")
ROWS, DIM = 30, 4
RAW = (np.arange(ROWS * DIM).reshape(ROWS, DIM) * 37) % 101 - 50


def write(name, emb, extra=None, **options):
    columns = {"id": pa.array(range(ROWS)), "emb": emb, **(extra or {})}
    pq.write_table(pa.table(columns), os.path.join(HERE, f"{name}.parquet"), **options)


def lists(kind, values=RAW / 2):
    return pa.array([list(row) for row in values.astype(kind.to_pandas_dtype())], pa.list_(kind))


os.makedirs(HERE, exist_ok=True)
f4 = pa.float32()
for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
    write(f"codec_{codec}", lists(f4), compression=codec)
for version in ("1.0", "2.0"):
    write(f"page_{version[0]}", lists(f4), data_page_version=version, data_page_size=64, row_group_size=7)
write("split_bytes", lists(f4), use_byte_stream_split=["emb.list.element"], use_dictionary=False)
write("large_list", lists(f4).cast(pa.large_list(f4)))
write("fixed_list", pa.FixedSizeListArray.from_arrays(pa.array((RAW / 2).astype("f4").ravel()), DIM))
write("legacy_names", lists(f4), use_compliant_nested_type=False)
required = pa.schema([pa.field("id", pa.int64(), False), pa.field("emb", pa.list_(pa.field("x", f4, False)), False)])
pq.write_table(
    pa.Table.from_arrays([pa.array(range(ROWS)), lists(f4).cast(required.field(1).type)], schema=required),
    os.path.join(HERE, "required.parquet"),
)
write("float64", lists(pa.float64()))
write("float16", pa.array([[np.float16(x) for x in row] for row in RAW / 2], pa.list_(pa.float16())))
write("int8", lists(pa.int8(), RAW))
write("uint8", lists(pa.uint8(), RAW + 50))
write("int64", lists(pa.int64(), RAW))
write("bool", lists(pa.bool_(), RAW > 0))
write("bad_null_inside", pa.array([list(map(float, r)) if i != 9 else [1.0, None, 2.0, 3.0] for i, r in enumerate(RAW)], pa.list_(f4)))
write("bad_empty", pa.array([list(map(float, r)) if i else [] for i, r in enumerate(RAW)], pa.list_(f4)))
write("bad_too_large", pa.array([[1e39 if i == 3 else 1.0] * 2 for i in range(ROWS)], pa.list_(pa.float64())))
write("columns", lists(f4), {
    "i8": pa.array([i - 15 for i in range(ROWS)], pa.int8()),
    "u32": pa.array([4294967295 - i for i in range(ROWS)], pa.uint32()),
    "text": pa.array([None if i == 4 else f"t{i % 3}" for i in range(ROWS)]),
    "dictionary": pa.array([f"d{i % 2}" for i in range(ROWS)]).dictionary_encode(),
    "real": pa.array([i / 4 for i in range(ROWS)], pa.float32()),
    "flag": pa.array([i % 2 == 0 for i in range(ROWS)]),
    "day": pa.array(range(ROWS), pa.date32()),
    "blob": pa.array([b"\xff"] * ROWS, pa.binary()),
    "price": pa.array([None] * ROWS, pa.decimal128(10, 2)),
    "place": pa.array([{"a": 1, "b": 2}] * ROWS),
})
