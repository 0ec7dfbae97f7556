"""The answer in float64, and how other answers differ from it. Runs in the benchmark's own environment.

Nothing is shared with Annvil: block by block a float64 matrix product finds, for each query, every row that
could be among its k nearest (with a margin far above the rounding of the product); those are evaluated again
in the machine's long double, where a product of two f32 is exact, and sorted by value, then by row number.
"""

import hashlib
import json
import os
import sys

import numpy as np

import data

BLOCK = 8_192
QUERIES = 500
# Relative; the product's own rounding is below 1e-12 for every dimension used here.
MARGIN = 1e-11
# Two keys nearer than this (relative) can change places by the rounding of a float64 sum alone.
ROUNDING = 1e-14


def repeats(base, k):
    """Whether each row is among the first k of those equal to it: others can never be among the k nearest."""
    seen = {}
    kept = np.ones(len(base), bool)
    for number, row in enumerate(base):
        key = hashlib.blake2b(row.tobytes(), digest_size=16).digest()
        seen[key] = seen.get(key, 0) + 1
        kept[number] = seen[key] <= k
    return kept


def likeness(metric, base, queries, base_norms, query_norms):
    """Larger is nearer, in float64: dot product, cosine, or minus half the square without the query's part."""
    found = queries @ base.T
    if metric == "cosine":
        # A zero row has no cosine and is nobody's neighbour.
        with np.errstate(divide="ignore", invalid="ignore"):
            found /= query_norms[:, None] * base_norms
        found[:, base_norms == 0] = -np.inf
    elif metric == "l2":
        found -= (base_norms**2 / 2)[None]
    return found


def candidates(metric, base, rows, queries, k):
    """For each query the rows (of `rows`) that can be among its k nearest."""
    wide = queries.astype(np.float64)
    query_norms = np.linalg.norm(wide, axis=1)
    blocks = [rows[at : at + BLOCK] for at in range(0, len(rows), BLOCK)]
    most = max((np.linalg.norm(base[ids].astype(np.float64), axis=1).max() for ids in blocks), default=0.0)
    largest = {"cosine": np.ones(len(queries)), "ip": query_norms * most, "l2": (query_norms + most) ** 2}[metric]
    margin = MARGIN * largest
    best = np.full((len(queries), 0), -np.inf)
    cut = np.full(len(queries), -np.inf)
    found = []
    for ids in blocks:
        block = base[ids].astype(np.float64)
        norms = np.linalg.norm(block, axis=1)
        scores = likeness(metric, block, wide, norms, query_norms)
        best = np.concatenate([best, scores], 1)
        if best.shape[1] > k:
            best = np.partition(best, -k, axis=1)[:, -k:]
            cut = best.min(1)
        which, where = np.nonzero((scores >= (cut - margin)[:, None]) & (scores > -np.inf))
        found.append((which, ids[where], scores[which, where]))
    which, ids, scores = (np.concatenate(part) for part in zip(*found))
    last = scores >= (cut - margin)[which]
    which, ids = which[last], ids[last]
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(1, len(queries)))
    return np.split(ids[order], ends)


def keys(metric, rows, query):
    """Smaller is nearer: the distance, for l2 its square, in long double."""
    rows, query = rows.astype(np.longdouble), query.astype(np.longdouble)
    if metric == "l2":
        return ((rows - query) ** 2).sum(1)
    dot = (rows * query).sum(1)
    if metric == "ip":
        return -dot
    return 1 - dot / np.sqrt((rows * rows).sum(1) * (query * query).sum())


def answer(metric, base, rows, queries, k):
    """Ids (-1 past the end) and keys of the k nearest of `rows`, a list of lists as arrays."""
    ids = np.full((len(queries), k), -1, np.int64)
    values = np.full((len(queries), k), np.nan, np.longdouble)
    for first in range(0, len(queries), QUERIES):
        some = queries[first : first + QUERIES]
        for number, near in enumerate(candidates(metric, base, rows, some, k)):
            key = keys(metric, base[near], some[number])
            order = np.lexsort((near, key))[:k]
            ids[first + number, : len(order)] = near[order]
            values[first + number, : len(order)] = key[order]
    return ids, values


def differences(metric, base, queries, right, values, theirs):
    """Counts ranks where `theirs` has another id: by more than float64's rounding, and within it."""
    differ, rounding = 0, 0
    for query, rank in zip(*np.nonzero(right != theirs)):
        mine, other = right[query, rank], theirs[query, rank]
        if mine < 0 or not 0 <= other < len(base):
            differ += 1
            continue
        key = keys(metric, base[other][None], queries[query])[0]
        scale = 1.0 if metric == "cosine" else abs(values[query, rank])
        if metric == "ip":
            scale = np.linalg.norm(base[mine].astype(float)) * np.linalg.norm(queries[query].astype(float))
        # Equal keys are no matter of rounding: the lower row number comes first.
        tied = key == values[query, rank]
        if not tied and abs(key - values[query, rank]) <= ROUNDING * scale:
            rounding += 1
        else:
            differ += 1
    return differ, rounding


def read_ibin(path, k):
    """Ids of a big-ann truth file, -1 where a list has ended."""
    queries, depth = (int(n) for n in np.fromfile(path, "<u4", 2))
    ids = np.fromfile(path, "<i4", queries * depth, offset=8).reshape(queries, depth).astype(np.int64)
    if depth < k:
        ids = np.pad(ids, ((0, 0), (0, k - depth)), constant_values=-1)
    return ids


def kept_answer(asked, base, rows, queries, sample, name):
    """`answer`, kept under target: it depends on the data alone."""
    what = [asked["sha256"], asked["metric"], asked["k"], name, [int(s) for s in sample], MARGIN]
    key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]
    path = os.path.join(asked["folder"], f"float64-{key}.npz")
    if os.path.exists(path):
        with np.load(path) as there:
            return there["ids"], there["values"]
    rows = rows[repeats(base[rows], asked["k"])]
    ids, values = answer(asked["metric"], base, rows, queries, asked["k"])
    np.savez(path, ids=ids, values=values)
    return ids, values


def main():
    """In: the case and the files of answers. Out: for each answer how many ids differ."""
    asked = json.load(sys.stdin)
    base, queries = data.read(asked["files"], asked["queries"])
    sample = np.unique(np.linspace(0, len(queries) - 1, min(asked["check"], len(queries))).astype(int))
    queries = queries[sample]
    results = {side: {"differ": 0, "rounding": 0} for side in asked["answers"]}
    shares = []
    for number, one in enumerate(asked["filters"] or [None]):
        passing = np.arange(len(base)) if one is None else np.flatnonzero(data.mask(asked["files"]["columns"], one))
        shares.append(len(passing) / len(base))
        name = None if one is None else "{} {} {}".format(*one)
        right, values = kept_answer(asked, base, passing, queries, sample, name)
        for side, files in asked["answers"].items():
            if isinstance(files, list):
                theirs = read_ibin(files[number], asked["k"])
            else:
                with np.load(files) as there:
                    theirs = there[f"arr_{number}"].astype(np.int64)
            differ, rounding = differences(asked["metric"], base, queries, right, values, theirs[sample])
            results[side]["differ"] += differ
            results[side]["rounding"] += rounding
    found = {"queries": len(sample), "ids": len(sample) * asked["k"] * len(shares), "shares": shares, "sides": results}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
