"""What is measured: data sets, cases, filters and the goals of the figures. Standard library only.

A data set is a base, queries and (for filters) columns; a case is one question put to all sides.
"""

from dataclasses import dataclass, field

# Neighbours asked for in every case.
K = 100

# Each filter is a column, a comparison, a value, and the share of rows that is meant to pass.
# The columns are independent of the vectors and of each other, but for `topic` in made sets.
SIX_FILTERS = [
    ("half", "=", 1, 0.5),
    ("fifth", "=", 2, 0.2),
    ("topic", "=", 3, 0.1),
    ("twentieth", "=", 7, 0.05),
    ("num", "<", 10_000, 0.01),
    ("rare", "<", 1_000, 0.001),
]


def equal_filters(count, share):
    """`count` independent filters, each passed by `share` of the rows: the grid on which the rule is checked."""
    return [(f"u{i}", "<", round(share * 1_000_000), share) for i in range(count)]


def filter_text(one):
    """The filter as `annvil truth --filter` takes it."""
    column, comparison, value, _ = one
    return f"{column} {comparison} {value}"


@dataclass(frozen=True)
class Data:
    """A data set. `kind` names the recipe in data.py, or `hdf5` for a file that is there."""

    name: str
    kind: str
    rows: int
    dim: int
    queries: int
    seed: int = 0
    file: str = ""


DATA = {
    d.name: d
    for d in [
        Data("e768", "embeddings", 200_000, 768, 4_000, seed=768),
        Data("e1536", "unit-embeddings", 100_000, 1_536, 500, seed=1536),
        Data("glove50", "hdf5", 200_000, 50, 1_000, seed=50, file="glove-200k-50-angular.hdf5"),
        Data("debian384", "hdf5", 50_000, 384, 1_000, seed=384, file="debian-50k-384-angular.hdf5"),
        Data("dominant", "two-dominant", 200_000, 128, 1_000, seed=2),
        Data("equal", "all-equal", 200_000, 128, 1_000, seed=1),
    ]
}


@dataclass(frozen=True)
class Case:
    """A question. `what`: plain, filters (against FAISS), slow-path (against Annvil's f32 search) or rule
    (Annvil's choice between one scan for all filters and each filter on its own rows, against both).
    `goals` maps a ratio's name to its least value."""

    name: str
    data: str
    metric: str
    queries: int
    what: str = "plain"
    numpy: bool = False
    goals: dict = field(default_factory=dict)
    filters: tuple = ()


# Ratios are the other side's median over Annvil's. `faiss` is IndexFlat, `bitmap` and `subsets` are the
# two ways to filter with it, `f32` is Annvil's own search without quantised screening.
FILTER_GOALS = {"bitmap": 12.0, "subsets": 2.5}
CASES = [
    Case("200k-768", "e768", "cosine", 1_000, numpy=True, goals={"faiss": 3.3}),
    Case("200k-768-4000q", "e768", "cosine", 4_000, goals={"faiss": 4.0}),
    Case("200k-768-l2", "e768", "l2", 1_000),
    Case("200k-768-ip", "e768", "ip", 1_000),
    Case("100k-1536", "e1536", "cosine", 500, numpy=True, goals={"faiss": 3.0}),
    Case("glove-50", "glove50", "cosine", 1_000, numpy=True, goals={"faiss": 10.0}),
    Case("debian-384", "debian384", "cosine", 1_000),
    Case("200k-768-filters", "e768", "cosine", 1_000, "filters", goals=FILTER_GOALS, filters=tuple(SIX_FILTERS)),
    Case("100k-1536-filters", "e1536", "cosine", 500, "filters", goals=FILTER_GOALS, filters=tuple(SIX_FILTERS)),
    Case("glove-50-filters", "glove50", "cosine", 1_000, "filters", goals=FILTER_GOALS, filters=tuple(SIX_FILTERS)),
    Case("dominant-l2", "dominant", "l2", 1_000, "slow-path", goals={"f32": 1.0}),
    Case("dominant-cosine", "dominant", "cosine", 1_000, "slow-path", goals={"f32": 1.0}),
    Case("equal-l2", "equal", "l2", 1_000, "slow-path", goals={"f32": 1.0}),
]
# Not part of the goals of speed: is the rule's choice the faster one? Chosen with --only rule.
CASES += [
    Case(
        f"rule-{name}-{count}x{share:g}%", name, "cosine", queries, "rule",
        goals={"better-plan": 1.0}, filters=tuple(equal_filters(count, share / 100)),
    )
    for name, queries in (("glove50", 1_000), ("e768", 1_000), ("e1536", 500))
    for count in (1, 6)
    for share in (0.1, 2, 10, 50)
]

# The rule may miss the better of two plans by this much.
RULE_LOSS = 0.15

# "Never slower than f32" is two runs of one program: this much is taken for noise.
F32_NOISE = 0.03


def quick(data):
    """The same set, a tenth of the rows and a fifth of the queries: for trying the benchmark itself."""
    if data.kind == "hdf5":
        return data
    return Data(f"{data.name}-quick", data.kind, data.rows // 10, data.dim, data.queries // 5, data.seed)
