"""Medians, ratios and goals from the measurements, and the page that shows them. Standard library only."""

from statistics import median

import cases

# Below this share of CPU time in wall time x threads, something else used the machine.
BUSY = 0.85


def summed(whole):
    """Adds to each case its figures, and to the whole the goals and the count of ids that differ."""
    facts = whole["machine"]
    peak = max(p["gflops"] for p in facts["peak"].values())
    facts["practical_peak_gflops"] = peak
    whole["goals"], whole["ids_differ"] = [], 0
    for case in whole["cases"]:
        if "skipped" in case:
            continue
        faiss = case["about"].get("faiss", {})
        case["shares"] = case.get("shares") or faiss.get("share") or [1.0]
        flops = 2 * case["rows"] * sum(case["shares"]) * case["queries"] * case["dim"]
        case["figures"] = {side: figures(runs, flops, peak) for side, runs in case["runs"].items()}
        case["busy"] = busy(case, facts["threads"])
        if "annvil" in case["runs"]:
            compare(case)
            whole["ids_differ"] += case["checked"]["sides"]["annvil"]["differ"]
        whole["goals"] += goals(case)
    reached = [goal["reached"] for goal in whole["goals"]]
    whole["goals_reached"] = all(reached) and None not in reached
    return whole


def figures(runs, flops, peak):
    """Of one side: seconds, and the work that a plain f32 product would be, by time."""
    seconds = [run["seconds"] for run in runs]
    found = {"median_s": median(seconds), "min_s": min(seconds), "max_s": max(seconds)}
    found["gflops_equivalent"] = flops / found["median_s"] / 1e9
    found["share_of_peak"] = found["gflops_equivalent"] / peak
    if "whole_seconds" in runs[0]:
        found["whole_median_s"] = median(run["whole_seconds"] for run in runs)
    return found


def busy(case, threads):
    """Whether FAISS did not get its CPUs. Where the time of a search is short this says nothing."""
    runs = case["runs"].get("faiss") or case["runs"].get("bitmap") or []
    shares = [run["cpu_seconds"] / run["seconds"] / threads for run in runs if run["seconds"] > 0.2]
    return bool(shares) and median(shares) < BUSY


def compare(case):
    """Ratios to Annvil: of medians, and the least and largest among rounds."""
    ours = case["runs"]["annvil"]
    for side, runs in case["runs"].items():
        if side == "annvil":
            continue
        each = [run["seconds"] / own["seconds"] for run, own in zip(runs, ours)]
        ratio = case["figures"][side]["median_s"] / case["figures"]["annvil"]["median_s"]
        case["figures"][side] |= {"ratio": ratio, "ratio_min": min(each), "ratio_max": max(each)}


# What a goal may be missed by.
ALLOWED = {"f32": cases.F32_NOISE, "better-plan": cases.RULE_LOSS}


def goals(case):
    """The goals of a case: the least ratio, what was found (null where not measured), reached or not."""
    found = []
    for side, least in case["goals"].items():
        if side == "better-plan":
            both = [case["figures"].get(plan, {}).get("ratio") for plan in ("plan:scan", "plan:rows")]
            ratio = None if None in both else min(both)
        else:
            ratio = case["figures"].get(side, {}).get("ratio")
        allowed = least - ALLOWED.get(side, 0)
        reached = None if ratio is None else ratio >= allowed
        found.append({"case": case["name"], "over": side, "least": least, "ratio": ratio, "reached": reached})
    if "checked" in case:
        ids = case["checked"]["sides"]["annvil"]["differ"]
        found.append({"case": case["name"], "over": "ids", "least": 0, "ratio": ids, "reached": ids == 0})
    return found


SIDES = {
    "annvil": "Annvil",
    "faiss": "FAISS flat",
    "bitmap": "FAISS, bitmap selectors",
    "subsets": "FAISS, copied subsets",
    "numpy": "NumPy f32",
    "f32": "Annvil, f32 only",
    "better-plan": "the faster of both plans",
    "plan:scan": "Annvil, one scan for all filters",
    "plan:rows": "Annvil, each filter on its own rows",
}


def page(whole):
    """The whole as Markdown, which is also what is printed."""
    facts = whole["machine"]
    lines = [f"# Exact search, {facts['at'][:10]}", ""]
    lines += machine_lines(facts)
    lines += ["", "## Times", ""]
    lines += ["Seconds of the search alone, median (least - largest). Ratio: the side's median over Annvil's, in",
              "brackets the least and largest ratio of a round. GFLOP/s: 2 x rows x queries x dimensions by time, as if",
              "every pair were a full f32 product, and its share of the machine's practical f32 peak. Whole: the median",
              "of the command from start to end, with opening, hashing and writing.", ""]
    lines += ["| case | side | seconds | ratio | GFLOP/s | of peak | whole |", "|---|---|---|---|---|---|---|"]
    for case in whole["cases"]:
        lines += case_lines(case)
    lines += ["", "## Ids against float64", ""] + id_lines(whole)
    lines += ["", "## Goals", ""] + goal_lines(whole)
    notes = note_lines(whole)
    if notes:
        lines += ["", "## Notes", ""] + notes
    return "\n".join(lines)


def machine_lines(facts):
    """The machine, in a few lines."""
    load = ", ".join(f"{x:.2f}" for x in facts["load_average_before"])
    peak = facts["practical_peak_gflops"]
    each = ", ".join(f"{name} {p['gflops']:.0f}" for name, p in facts["peak"].items())
    nominal = facts["nominal_peak_gflops"]
    known = f"{nominal:.0f} GFLOP/s by two AVX-512 units at the nominal {facts['nominal_mhz']:.0f} MHz" if nominal else "not known"
    levels = facts["kernel_levels"]
    return [
        f"- machine: {facts['cpu']} (family, model, stepping {'/'.join(str(x) for x in facts['family_model_stepping'])}), "
        f"{facts['cpus']} CPUs, {facts['system']}, governor {facts['governor'] or 'unknown'}",
        f"- instructions: {' '.join(facts['instructions'])}" + (f"; Annvil's kernels: {levels}" if levels else ""),
        f"- load average before: {load}",
        f"- {facts['annvil']}, commit {facts['commit']}{' with uncommitted changes' if facts['uncommitted'] else ''}; "
        f"{facts['threads']} threads, {facts['rounds']} rounds{', quick' if facts['quick'] else ''}",
        f"- opponents: {', '.join(facts['requirements'][1:])}; Python {facts['python']}; OpenBLAS on SKYLAKEX",
        f"- f32 peak: {peak:.0f} GFLOP/s in practice (sgemm 4096^3, kernel {each}); in theory {known}",
    ]


def case_lines(case):
    """Table rows of a case."""
    if "skipped" in case:
        return [f"| {case['name']} | skipped: {case['skipped']} | | | | | |"]
    rows = []
    name = f"{case['name']}: {case['rows']:,} x {case['dim']:,}, {case['queries']:,} queries, {case['metric']}"
    if case["filters"]:
        name += f", {len(case['filters'])} filters"
    for side in sorted(case["figures"], key=list(SIDES).index):
        f = case["figures"][side]
        ratio = f"**{f['ratio']:.2f}** ({f['ratio_min']:.2f} - {f['ratio_max']:.2f})" if "ratio" in f else ""
        whole = f"{f['whole_median_s']:.2f}" if "whole_median_s" in f else ""
        seconds = f"{f['median_s']:.3f} ({f['min_s']:.3f} - {f['max_s']:.3f})"
        rows.append(f"| {name} | {SIDES[side]}{way(case['runs'][side])} | {seconds} | {ratio} | {f['gflops_equivalent']:.0f} | "
                    f"{f['share_of_peak']:.0%} | {whole} |")
        name = ""
    return rows


def way(runs):
    """How Annvil searched, where it says so."""
    said = [runs[0].get(part) for part in ("method", "kernel")]
    said = [str(part) for part in said if part]
    return f" ({', '.join(said)})" if said else ""


def id_lines(whole):
    """What differs from float64."""
    lines = ["Ids that differ from the float64 answer (ties to the lowest row), rank by rank; \"rounding\" are ranks where",
             "two keys are nearer to each other than a float64 sum is exact. FAISS and NumPy compute in f32, so theirs differ.",
             "", "| case | queries | ids | Annvil | rounding | FAISS | NumPy |", "|---|---|---|---|---|---|---|"]
    for case in whole["cases"]:
        if "checked" in case:
            sides = case["checked"]["sides"]
            cells = [str(sides[s]["differ"]) if s in sides else "" for s in ("faiss", "numpy")]
            ours = sides["annvil"]
            lines.append(f"| {case['name']} | {case['checked']['queries']} | {case['checked']['ids']} | {ours['differ']} | "
                         f"{ours['rounding']} | {' | '.join(cells)} |")
    return lines


def goal_lines(whole):
    """The goals table."""
    lines = ["| case | goal | found | |", "|---|---|---|---|"]
    said = {True: "reached", False: "NOT reached", None: "not measured"}
    for goal in whole["goals"]:
        if goal["over"] == "ids":
            wanted, found = "ids equal float64's", f"{goal['ratio']} differ"
        else:
            less = ALLOWED.get(goal["over"])
            noise = f" (less {less:.0%})" if less else ""
            wanted = f"{goal['least']:.1f} x over {SIDES[goal['over']]}{noise}"
            found = "" if goal["ratio"] is None else f"{goal['ratio']:.2f} x"
        lines.append(f"| {goal['case']} | {wanted} | {found} | {said[goal['reached']]} |")
    return lines


def note_lines(whole):
    """What must be known to read the figures."""
    notes = []
    measured = [case for case in whole["cases"] if "skipped" not in case]
    crowded = [case["name"] for case in measured if case["busy"]]
    if crowded:
        notes.append(f"- The machine was busy with something else during {', '.join(crowded)}: do not quote these.")
    if max(p["cpu_share"] for p in whole["machine"]["peak"].values()) < BUSY:
        notes.append("- The machine was busy while its peak was measured: the shares of the peak are too high.")
    if any(run.get("clock") == "call" for case in measured for run in case["runs"].get("annvil", [])):
        notes.append("- This binary does not give the time of the search alone: Annvil's seconds hold reading and hashing too.")
    missing = [goal["case"] for goal in whole["goals"] if goal["reached"] is None and goal["over"] == "f32"]
    if missing and any("annvil" in case["runs"] for case in measured):
        notes.append(f"- This binary cannot be held to its f32 path: {', '.join(missing)}.")
    for case in measured:
        if case["filters"]:
            shares = ", ".join(f"`{text}` {share:.2%}" for text, share in zip(case["filters"], case["shares"]))
            copying = case["about"].get("faiss", {}).get("copy_seconds")
            more = f"; copying the subsets and building their indexes took {copying:.2f} s more" if copying else ""
            notes.append(f"- {case['name']}: {shares}{more}.")
    return notes
