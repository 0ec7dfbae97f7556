"""Makes the data sets of perf/truth, and reads them. Runs in the benchmark's own environment.

Made sets are a pure function of recipe, seed and the pinned NumPy; their SHA-256 is kept beside them and
in every result, so that figures of different data are not taken for one another.

Files of a set, all of which both sides read as they are: NAME.fbin (u32 rows, u32 dim, f32 rows) and
NAME-queries-N.fbin, or an HDF5 file with `train` and `test`; NAME-columns.parquet.
"""

import hashlib
import json
import os
import sys

import numpy as np

BLOCK = 16_384
# Raised with every change of what is made, so that no older file is taken for it.
RECIPE = 2


def make(spec, folder, shared):
    """Makes what is missing of the set; returns its description (paths, shapes, hashes).

    `spec` is a cases.Data as a dict, `shared` the folder of ready files, or none.
    """
    os.makedirs(folder, exist_ok=True)
    name = spec["name"]
    card = os.path.join(folder, f"{name}.json")
    wanted = {k: spec[k] for k in ("kind", "rows", "dim", "queries", "seed")} | {"recipe": RECIPE}
    if os.path.exists(card):
        with open(card) as file:
            there = json.load(file)
        if there["wanted"] == wanted and all(os.path.exists(p) for p in there["files"].values()):
            return there
    print(f"making {name}: {spec['rows']} x {spec['dim']}", file=sys.stderr)
    columns = os.path.join(folder, f"{name}-columns.parquet")
    if spec["kind"] == "hdf5":
        base = os.path.join(shared, spec["file"])
        topics = np.random.default_rng(spec["seed"]).integers(0, 10, spec["rows"])
        files = {"base": base}
    else:
        base = os.path.join(folder, f"{name}.fbin")
        recipe = Recipe(spec)
        topics = write(base, spec["rows"], spec["dim"], lambda at, n: recipe.rows(at, n))
        files = {"base": base, "queries": os.path.join(folder, f"{name}-queries-{spec['queries']}.fbin")}
        # Queries are rows past the end of the base: relatives of its rows, none of them in it.
        write(files["queries"], spec["queries"], spec["dim"], lambda at, n: recipe.rows(spec["rows"] + at, n))
    write_columns(columns, topics, spec)
    files["columns"] = columns
    there = {"wanted": wanted, "files": files, "sha256": {k: sha256(p) for k, p in files.items()}}
    with open(card, "w") as file:
        json.dump(there, file, indent=1)
    return there


class Recipe:
    """Rows by number. Every block has a generator of its own, so a row does not depend on the others."""

    def __init__(self, spec):
        self.kind, self.seed, self.dim = spec["kind"], spec["seed"], spec["dim"]
        rng = np.random.default_rng([self.seed, 0])
        if self.kind.endswith("embeddings"):
            self.prepare_embeddings(rng)
        elif self.kind == "all-equal":
            self.row = rng.standard_normal(self.dim, dtype=np.float32)

    def prepare_embeddings(self, rng):
        """Axes with a falling spectrum, turned at random; topics with Zipf sizes and subtopics in them."""
        dim = self.dim
        self.turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)
        # Real models spread unevenly over their coordinates, and a few coordinates stand out.
        self.scale = np.exp(rng.normal(0, 0.3, dim)).astype(np.float32)
        self.mean = rng.normal(0, 0.015, dim).astype(np.float32)
        out = rng.choice(dim, 4, replace=False)
        self.mean[out] += rng.choice([-1, 1], 4) * np.float32(0.15)
        spectrum = (1 + np.arange(dim) / 12.0) ** -0.75
        self.spectrum = (spectrum / np.linalg.norm(spectrum)).astype(np.float32)
        self.topics, self.subtopics = 200, 20
        self.weights = 1 / (5 + np.arange(self.topics))
        self.weights /= self.weights.sum()
        shape = (self.topics, dim)
        self.centres = rng.standard_normal(shape, dtype=np.float32) * self.spectrum
        shape = (self.topics, self.subtopics, dim)
        self.subcentres = rng.standard_normal(shape, dtype=np.float32) * self.spectrum

    def rows(self, at, n):
        """`n` rows from row `at` (one block), and the topic of each in tenths."""
        rng = np.random.default_rng([self.seed, 1, at])
        if self.kind == "two-dominant":
            rows = rng.standard_normal((n, self.dim), dtype=np.float32)
            rows[:, :2] *= 100
            return rows, rng.integers(0, 10, n)
        if self.kind == "all-equal":
            return np.repeat(self.row[None], n, 0), rng.integers(0, 10, n)
        topic = rng.choice(self.topics, n, p=self.weights)
        subtopic = rng.integers(0, self.subtopics, n)
        # Relatives at all distances: the own part of a row is small for some, large for most.
        own = rng.beta(2.0, 1.2, n).astype(np.float32)[:, None]
        latent = rng.standard_normal((n, self.dim), dtype=np.float32) * self.spectrum * own
        latent += 0.65 * self.centres[topic] + 0.55 * self.subcentres[topic, subtopic]
        rows = (latent @ self.turn) * self.scale + self.mean
        # One row in 200 repeats its neighbour exactly: ties are real.
        copies = np.flatnonzero(rng.random(n) < 0.005)
        rows[copies] = rows[copies - 1]
        if self.kind == "unit-embeddings":
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        else:
            rows *= np.exp(rng.normal(0, 0.1, n)).astype(np.float32)[:, None]
            rows[copies] = rows[copies - 1]
        # Topics of about equal size, ten of them: alike in meaning, as a category of a shop is.
        share = np.concatenate([[0], np.cumsum(self.weights)])[:-1]
        return rows, np.minimum((share[topic] * 10).astype(np.int64), 9)


def write(path, rows, dim, block):
    """Writes an fbin file block by block; returns the topics of its rows."""
    topics = []
    with open(path + ".tmp", "wb") as file:
        np.array([rows, dim], "<u4").tofile(file)
        for at in range(0, rows, BLOCK):
            made, topic = block(at, min(BLOCK, rows - at))
            np.ascontiguousarray(made, "<f4").tofile(file)
            topics.append(topic)
    os.replace(path + ".tmp", path)
    return np.concatenate(topics)


def write_columns(path, topics, spec):
    """The columns that the filters of cases.py ask for."""
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng([spec["seed"], 2])
    below = {"half": 2, "fifth": 5, "twentieth": 20, "num": 1_000_000, "rare": 1_000_000}
    columns = {name: rng.integers(0, most, spec["rows"]) for name, most in below.items()}
    columns["topic"] = topics
    columns |= {f"u{i}": rng.integers(0, 1_000_000, spec["rows"]) for i in range(6)}
    table = pyarrow.table({name: pyarrow.array(v.astype(np.int64)) for name, v in columns.items()})
    pyarrow.parquet.write_table(table, path)


def sha256(path):
    """SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(files, queries):
    """Base and the first `queries` queries, both f32 and in memory."""
    if "queries" in files:
        return np.array(fbin(files["base"])), np.array(fbin(files["queries"])[:queries])
    import h5py

    with h5py.File(files["base"]) as file:
        return file["train"][:].astype(np.float32), file["test"][:queries].astype(np.float32)


def fbin(path):
    """An fbin file, mapped."""
    rows, dim = np.fromfile(path, "<u4", 2)
    return np.memmap(path, "<f4", "r", offset=8, shape=(int(rows), int(dim)))


def mask(path, one):
    """Which rows pass a filter of cases.py."""
    import pyarrow.parquet

    column, comparison, value, _ = one
    values = pyarrow.parquet.read_table(path, columns=[column])[column].to_numpy()
    return {"=": np.equal, "<": np.less}[comparison](values, value)


def take_queries(files, count, folder):
    """A file with the first `count` queries, made where it is missing; none for HDF5 files."""
    if "queries" not in files:
        return None
    whole = fbin(files["queries"])
    if len(whole) == count:
        return files["queries"]
    path = files["queries"].rsplit("-", 1)[0] + f"-{count}.fbin"
    if not os.path.exists(path):
        write(path, count, whole.shape[1], lambda at, n: (whole[at : at + n], np.zeros(n)))
    return path


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    there = make(asked["data"], asked["folder"], asked["shared"])
    counts = {str(n): take_queries(there["files"], n, asked["folder"]) for n in asked["queries"]}
    json.dump(there | {"query_files": counts}, sys.stdout)
