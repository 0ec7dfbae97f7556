"""Medians, ratios and goals from the measurements. Standard library only."""

from statistics import median

# The goals: client CPU at most so many times pgbench's and so much of psycopg's; throughput and loading at least so
# much of the opponent's.
CPU_OF_PGBENCH, CPU_OF_PSYCOPG, THROUGHPUT, LOAD = 1.5, 1 / 3, 0.95, 0.9


def summed(whole):
    """Adds medians, ratios and goals to the whole."""
    whole["goals"] = []
    if "client" in whole:
        whole["client"]["figures"] = {count: of_clients(runs) for count, runs in whole["client"]["runs"].items()}
        whole["goals"] += client_goals(whole["client"])
    for name, server in whole.get("load", {}).items():
        for case in server["cases"]:
            case["figures"] = {side: of_loads(runs, whole["rows"]["rows"]) for side, runs in case["runs"].items()}
            whole["goals"] += load_goals(name, case)
    whole["goals_reached"] = all(goal["reached"] for goal in whole["goals"])
    return whole


def of_clients(runs):
    """Of each side the median throughput and CPU time for a query; least and largest."""
    found = {}
    for side, each in runs.items():
        names = [n for n in ("throughput", "cpu_us", "process_cpu_us", "outside_cpu_us", "user_us", "recall", "client_share",
                             "cpu_wait_share") if each[0].get(n) is not None]
        found[side] = {name: spread([run[name] for run in each if run[name] is not None]) for name in names}
    return found


def spread(values):
    """Median, least, largest."""
    return {"median": median(values), "min": min(values), "max": max(values)}


def best_pgbench(figures, name, better):
    """pgbench with one thread or with several, whichever did better by this figure."""
    there = [side for side in ("pgbench", "pgbench-j") if side in figures]
    return better(there, key=lambda side: figures[side][name]["median"])


def client_goals(client):
    """For each number of clients: CPU against both, throughput against pgbench."""
    found = []
    for count, figures in client["figures"].items():
        runs = client["runs"][count]
        cheap, fast = best_pgbench(figures, "cpu_us", min), best_pgbench(figures, "throughput", max)
        found.append(goal(f"client CPU, {count} clients", cheap, ratio(runs, "cpu_us", cheap), most=CPU_OF_PGBENCH))
        found.append(goal(f"client CPU, {count} clients", "psycopg", ratio(runs, "cpu_us", "psycopg"), most=CPU_OF_PSYCOPG))
        found.append(goal(f"throughput, {count} clients", fast, ratio(runs, "throughput", fast), least=THROUGHPUT))
    return found


def ratio(runs, name, other, own="annvil"):
    """Annvil's figure over another side's: of the medians, and the least and largest of a round."""
    ours, theirs = [run[name] for run in runs[own]], [run[name] for run in runs[other]]
    each = [a / b for a, b in zip(ours, theirs)]
    return {"of_medians": median(ours) / median(theirs), "min": min(each), "max": max(each)}


def goal(what, over, found, least=None, most=None):
    """A goal and whether it was reached."""
    reached = found["of_medians"] >= least if least is not None else found["of_medians"] <= most
    return {"what": what, "over": over, "least": least, "most": most, "ratio": found, "reached": reached}


def of_loads(runs, rows):
    """Of one side: seconds and rows a second, alone and with what is done afterwards."""
    found = {"seconds": spread([run["seconds"] for run in runs]), "rows_per_second": rows / median(run["seconds"] for run in runs)}
    if "ending" in runs[0]:
        whole = median(run["seconds"] + run["ending"] for run in runs)
        found |= {"ending": spread([run["ending"] for run in runs]), "whole_seconds": whole, "whole_rows_per_second": rows / whole}
    return found


def load_goals(name, case):
    """Rows alone against rows alone, and the whole against the whole; over the faster of the opponent's ways."""
    others = [side for side in case["runs"] if not side.startswith("annvil")]
    fast = min(others, key=lambda side: case["figures"][side]["seconds"]["median"])
    ours = {"rows alone": [run["seconds"] for run in case["runs"]["annvil-bare"]],
            "with what follows": [run["seconds"] for run in case["runs"]["annvil"]]}
    theirs = {"rows alone": [run["seconds"] for run in case["runs"][fast]],
              "with what follows": [run["seconds"] + run["ending"] for run in case["runs"][fast]]}
    found = []
    for what in ours:
        each = [b / a for a, b in zip(ours[what], theirs[what])]
        speed = {"of_medians": median(theirs[what]) / median(ours[what]), "min": min(each), "max": max(each)}
        found.append(goal(f"loading {name}, {case['workers']} workers, {what}", fast, speed, least=LOAD))
    return found
