"""FAISS and NumPy, one process each, driven line by line so that measurements can alternate.

In: one JSON object a line. The first is the case ({"side", "files", "queries", "metric", "k", "threads",
"filters"}); each later one names what to do: {"do": "plain" | "bitmap" | "subsets"}. Out: one JSON object
a line, {"ready": ...} and then {"seconds", "cpu_seconds", ...}. {"do": "ids", "of": ..., "file": ...} writes
the ids of the last answer.

Only the search stands inside the clock: normalising, building indexes, copying rows and packing bitmaps do not.
The number of threads and the kernel of OpenBLAS are set by the parent, in the environment.
"""

import json
import sys
import time

import numpy as np

import data


class Clock:
    """Wall and CPU time of a block."""

    def __enter__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu


def unit(rows):
    """Rows divided by their norms, in place; zero rows stay."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    norms[norms == 0] = 1
    rows /= norms.astype(np.float32)[:, None]
    return rows


class Faiss:
    """IndexFlat: all rows; with a bitmap selector per filter; one index of copied rows per filter."""

    def __init__(self, asked, base, queries):
        import faiss

        self.faiss = faiss
        faiss.omp_set_num_threads(asked["threads"])
        self.k, self.metric, self.queries = asked["k"], asked["metric"], queries
        self.masks = [data.mask(asked["files"]["columns"], one) for one in asked["filters"]]
        self.bits = [np.packbits(m, bitorder="little") for m in self.masks]
        self.selectors = [faiss.IDSelectorBitmap(len(base), faiss.swig_ptr(b)) for b in self.bits]
        with Clock() as copying:
            self.parts = [self.index(base[m]) for m in self.masks]
        self.copy_seconds = copying.wall
        self.all = self.index(base)
        self.answers = []

    def about(self):
        """Versions, as FAISS states them, and what the copies cost."""
        return {
            "version": self.faiss.__version__,
            "options": self.faiss.get_compile_options().split(),
            "threads": self.faiss.omp_get_max_threads(),
            "copy_seconds": self.copy_seconds if self.parts else None,
            "share": [float(m.mean()) for m in self.masks],
        }

    def index(self, rows):
        """A flat index of `rows`."""
        kind = self.faiss.IndexFlatL2 if self.metric == "l2" else self.faiss.IndexFlatIP
        index = kind(rows.shape[1])
        index.add(rows)
        return index

    def run(self, what):
        """One measurement: all searches of `what`, one after the other."""
        answers, each = [], []
        with Clock() as whole:
            if what == "plain":
                answers.append(self.all.search(self.queries, self.k)[1])
            for number, selector in enumerate(self.selectors):
                begun = time.perf_counter()
                if what == "bitmap":
                    params = self.faiss.SearchParameters(sel=selector)
                    answers.append(self.all.search(self.queries, self.k, params=params)[1])
                elif what == "subsets":
                    answers.append(self.parts[number].search(self.queries, self.k)[1])
                each.append(time.perf_counter() - begun)
        if what == "subsets":
            numbers = [np.append(np.flatnonzero(m), -1) for m in self.masks]
            answers = [rows[a] for rows, a in zip(numbers, answers)]
        self.answers = answers
        return {"seconds": whole.wall, "cpu_seconds": whole.cpu, "each": each if what != "plain" else None}


class Numpy:
    """What people write by hand: f32 matrix product, argpartition, by blocks of rows."""

    BLOCK = 16_384

    def __init__(self, asked, base, queries):
        self.base, self.queries, self.k, self.metric = base, queries, asked["k"], asked["metric"]
        self.half = np.einsum("ij,ij->i", base, base) / 2 if self.metric == "l2" else None
        self.answers = []

    def about(self):
        """Version."""
        return {"version": np.__version__}

    def run(self, _):
        """One measurement."""
        with Clock() as whole:
            scores = ids = None
            for at in range(0, len(self.base), self.BLOCK):
                block = self.queries @ self.base[at : at + self.BLOCK].T
                if self.half is not None:
                    block -= self.half[at : at + self.BLOCK]
                k = min(self.k, block.shape[1])
                best = np.argpartition(block, -k, axis=1)[:, -k:]
                found = np.take_along_axis(block, best, 1)
                scores = found if scores is None else np.concatenate([scores, found], 1)
                ids = best + at if ids is None else np.concatenate([ids, best + at], 1)
            order = np.argsort(-scores, axis=1)[:, : self.k]
            self.answers = [np.take_along_axis(ids, order, 1)]
        return {"seconds": whole.wall, "cpu_seconds": whole.cpu}


def peak(asked):
    """GFLOP/s of f32 matrix products 4096^3, the best of eight: what OpenBLAS gets out of this machine."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((4096, 4096), dtype=np.float32) for _ in range(2))
    best = None
    for _ in range(8):
        with Clock() as clock:
            a @ b
        if best is None or clock.wall < best.wall:
            best = clock
    share = best.cpu / best.wall / asked["threads"]
    return {"gflops": 2 * 4096**3 / best.wall / 1e9, "cpu_share": share, "numpy": np.__version__, "blas": blas()}


def blas():
    """The library and kernel that NumPy's matrix product uses, as far as NumPy says it."""
    said = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {k: said.get(k) for k in ("name", "version", "openblas configuration")}


def say(value):
    """One line out."""
    print(json.dumps(value), flush=True)


def main():
    """The loop."""
    asked = json.loads(sys.stdin.readline())
    if asked["side"] == "peak":
        return say(peak(asked))
    base, queries = data.read(asked["files"], asked["queries"])
    if asked["metric"] == "cosine":
        base, queries = unit(base), unit(queries)
    side = {"faiss": Faiss, "numpy": Numpy}[asked["side"]](asked, base, queries)
    if asked["side"] == "faiss":
        del base
    say({"ready": side.about()})
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "ids":
            np.savez(order["file"], *side.answers)
            say({"written": order["file"]})
        else:
            say(side.run(order["do"]))


if __name__ == "__main__":
    main()
