"""Tests of float64.py and data.py: `perf/truth/run --self-test` runs them in the benchmark's environment.

The check that finds "0 ids differ" must be able to find more than 0.
"""

import tempfile
import unittest
from fractions import Fraction

import numpy as np

import data
import float64


def brute(metric, base, rows, query, k):
    """The k nearest in exact rational arithmetic, ties to the lowest row."""
    exact = [Fraction(float(x)) for x in query]

    def key(row):
        values = [Fraction(float(x)) for x in base[row]]
        dot = sum(a * b for a, b in zip(values, exact))
        if metric == "l2":
            return sum((a - b) ** 2 for a, b in zip(values, exact))
        if metric == "ip":
            return -dot
        # Ordered as the cosine is, without a root; zero rows have none.
        square = sum(a * a for a in values)
        return -dot * abs(dot) / square if square else None

    found = [(key(int(row)), int(row)) for row in rows]
    return [row for value, row in sorted(f for f in found if f[0] is not None)][:k]


class Answers(unittest.TestCase):
    """float64.answer against rational arithmetic, with copies, ties at rank k and zero rows."""

    def check(self, metric, base, rows, k):
        queries = np.concatenate([base[[3, 50]] + np.float32(0.25), -base[:1]])
        kept = rows[float64.repeats(base[rows], k)]
        ids, values = float64.answer(metric, base, kept, queries, k)
        for number, query in enumerate(queries):
            wanted = brute(metric, base, rows, query, k)
            self.assertEqual(list(ids[number][: len(wanted)]), wanted, (metric, number))
            self.assertTrue((ids[number][len(wanted) :] == -1).all())
        return queries, ids, values

    def base(self):
        rng = np.random.default_rng(7)
        base = rng.standard_normal((300, 9), dtype=np.float32)
        base[100:200] = base[3]
        base[250] = base[50]
        return base

    def test_each_metric(self):
        for metric in ("l2", "ip", "cosine"):
            base = self.base()
            if metric == "cosine":
                base[10] = 0
            self.check(metric, base, np.arange(300), 20)
            self.check(metric, base, np.arange(0, 300, 3), 20)

    def test_fewer_rows_than_asked(self):
        for metric in ("l2", "ip", "cosine"):
            self.check(metric, self.base(), np.array([2, 5, 250]), 20)

    def test_all_rows_equal_give_the_first(self):
        base = np.repeat(self.base()[:1], 300, 0)
        _, ids, _ = self.check("l2", base, np.arange(300), 20)
        self.assertEqual(list(ids[0]), list(range(20)))

    def test_wrong_answers_are_counted(self):
        base = self.base()
        queries, ids, values = self.check("l2", base, np.arange(300), 20)
        same = float64.differences("l2", base, queries, ids, values, ids.copy())
        self.assertEqual(same, (0, 0))
        # Another copy of the row at this rank: a tie that went to the wrong row.
        for wrong in (150, 299, -1):
            theirs = ids.copy()
            theirs[0, 0] = wrong
            self.assertEqual(float64.differences("l2", base, queries, ids, values, theirs), (1, 0))

    def test_rounding_is_told_from_difference(self):
        base = np.ones((2, 4), np.float32)
        values = float64.keys("l2", base, np.zeros(4, np.float32))[None]
        values[0, 0] *= np.longdouble(1) - np.longdouble(2) ** -53
        right, theirs = np.array([[0, 1]]), np.array([[1, 1]])
        found = float64.differences("l2", base, np.zeros((1, 4), np.float32), right, values, theirs)
        self.assertEqual(found, (0, 1))


class Sets(unittest.TestCase):
    """Made sets."""

    def spec(self, kind):
        return {"name": kind, "kind": kind, "rows": 20_000, "dim": 16, "queries": 10, "seed": 5, "file": ""}

    def test_the_same_recipe_gives_the_same_bytes(self):
        for kind in ("embeddings", "unit-embeddings", "two-dominant", "all-equal"):
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
                first, second = (data.make(self.spec(kind), folder, None) for folder in (one, two))
                self.assertEqual(first["sha256"], second["sha256"])
                base, queries = data.read(first["files"], 10)
                self.assertEqual((base.shape, queries.shape), ((20_000, 16), (10, 16)))
                self.assertTrue(np.isfinite(base).all())

    def test_filters_pass_what_they_say(self):
        with tempfile.TemporaryDirectory() as folder:
            files = data.make(self.spec("embeddings"), folder, None)["files"]
            for one in [("half", "=", 1, 0.5), ("twentieth", "=", 7, 0.05), ("u3", "<", 20_000, 0.02)]:
                self.assertAlmostEqual(data.mask(files["columns"], one).mean(), one[3], delta=0.01)


if __name__ == "__main__":
    unittest.main()
