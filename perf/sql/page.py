"""The page that shows a result, as Markdown. Standard library only."""

SIDES = {
    "annvil": "Annvil", "pgbench": "pgbench, one thread", "pgbench-j": "pgbench, a thread for each CPU", "psycopg": "psycopg 3",
    "annvil-bare": "Annvil, rows alone", "psql": "psql \\copy", "multi": "C, multi-row INSERT", "bulk": "C, array binding",
}


def page(whole):
    """The whole."""
    facts = whole["machine"]
    lines = [f"# SQL engines: client cost and loading, {facts['at'][:10]}", ""] + machine_lines(whole)
    if "client" in whole:
        lines += ["", "## Client cost", ""] + client_lines(whole["client"])
    if "load" in whole:
        lines += ["", "## Loading", ""] + load_lines(whole["load"])
    lines += ["", "## Goals", ""] + goal_lines(whole["goals"])
    return "\n".join(lines)


def machine_lines(whole):
    """What the figures belong to."""
    facts, rows = whole["machine"], whole["rows"]
    lines = [
        f"- machine: {facts['cpu']} (family, model, stepping {'/'.join(str(x) for x in facts['family_model_stepping'])}), "
        f"{facts['cpus']} CPUs, {facts['system']}, governor {facts['governor'] or 'unknown'}; servers and clients on the same CPUs",
        "- load average before: " + ", ".join(f"{x:.2f}" for x in facts["load_average_before"]),
        f"- {facts['annvil']}, commit {facts['commit']}{' with uncommitted changes' if facts['uncommitted'] else ''}; "
        f"{facts['rounds']} rounds{', quick' if facts['quick'] else ''}",
        f"- rows: {rows['name']}, {rows['rows']:,} x {rows['dim']} float32, SHA-256 {rows['sha256'][:16]}…",
    ]
    if facts["load_average_before"][0] > BUSY * facts["cpus"]:
        lines.append("- **The machine was busy with something else before the run: do not quote these figures.**")
    return lines


# Load average of the last minute, for each CPU, above which the machine was not free.
BUSY = 0.5


def client_lines(client):
    """The table of clients."""
    case = client["case"]
    about = client["runs"][next(iter(client["runs"]))]["psycopg"][0]["about"]
    lines = [
        f"{client['server']}; k = {case['k']}, ef_search = {case['effort']}, "
        + ", ".join(f"{n} = {v}" for n, v in case["params"].items()) + f"; `{client['select']}`; {about}.",
        "",
        "Medians (least - largest) of the rounds. CPU: user and system time of the client for a query, in microseconds. For Annvil that is",
        "its client threads' time in the windows; *outside*: the same from the kernel's book, with connecting and warm-up; *process*:",
        "its whole process while a point is measured. Ratio: Annvil's CPU over the side's; Annvil's throughput over the side's.",
        "",
        "| clients | side | queries/s | CPU, us | CPU ratio | throughput ratio | of it outside, process |",
        "|---|---|---|---|---|---|---|",
    ]
    for count, figures in client["figures"].items():
        name = str(count)
        for side, f in figures.items():
            ratios, more = ["", ""], ""
            if side == "annvil":
                more = ", ".join(f"{f[n]['median']:.0f}" for n in ("outside_cpu_us", "process_cpu_us") if n in f)
            else:
                ours = figures["annvil"]
                ratios = [f"{ours[n]['median'] / f[n]['median']:.2f}" for n in ("cpu_us", "throughput")]
            lines.append(f"| {name} | {SIDES[side]} | {three(f['throughput'], 0)} | {three(f['cpu_us'], 1)} | {' | '.join(ratios)} | {more} |")
            name = ""
    return lines


def three(found, digits):
    """Median (least - largest)."""
    return f"{found['median']:,.{digits}f} ({found['min']:,.{digits}f} - {found['max']:,.{digits}f})"


def load_lines(load):
    """The tables of loading."""
    lines = ["Seconds of the rows alone, median (least - largest), and with what makes the load complete. Annvil's own load time holds the",
             "latter, so its rows alone are measured with a definition that leaves it out.", "",
             "| server | workers | batch | side | rows alone, s | rows/s | whole, s | rows/s |", "|---|---|---|---|---|---|---|---|"]
    for server in load.values():
        name = f"{server['server']}, then {server['ending']}"
        for case in server["cases"]:
            for side, f in case["figures"].items():
                whole = [f"{f['whole_seconds']:.2f}", f"{f['whole_rows_per_second']:,.0f}"] if "whole_seconds" in f else ["", ""]
                alone = [three(f["seconds"], 2), f"{f['rows_per_second']:,.0f}"]
                if side == "annvil":
                    alone, whole = ["", ""], alone
                lines.append(f"| {name} | {case['workers']} | {case['batch']:,} | {SIDES[side]} | {' | '.join(alone + whole)} |")
                name = ""
    return lines


def goal_lines(goals):
    """The goals table."""
    lines = ["Ratio: of medians (least - largest of a round). Of pgbench's and the C program's ways the better one counts.", "",
             "| what | over | goal | found | |", "|---|---|---|---|---|"]
    for goal in goals:
        wanted = f"at least {goal['least']:.2f}" if goal["least"] is not None else f"at most {goal['most']:.2f}"
        ratio = goal["ratio"]
        found = f"{ratio['of_medians']:.2f} ({ratio['min']:.2f} - {ratio['max']:.2f})"
        lines.append(f"| {goal['what']} | {SIDES[goal['over']]} | {wanted} | {found} | {'reached' if goal['reached'] else 'NOT reached'} |")
    return lines
