"""Annvil's side: the binary, with definitions that differ from its own where the comparison needs it.

Standard library only.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

# How often a phase that is waited for is looked for, and how often threads are read.
LOOK, SAMPLE = 0.02, 0.1
LONGEST = 3600


def definition(root, name, folder, keep=False, bare=False, build=True):
    """A definition file, written to `folder`: `keep` leaves the table at the end (it is dropped before the next is made),
    `bare` leaves out what is done after the rows are in, without `build` no index is made. Else it is the one in `engines/`."""
    with open(os.path.join(root, "engines", f"{name}.toml")) as file:
        text = file.read()
    if keep:
        dropping = re.search(r"^drop = \[(.*)\]$", text, re.M)
        if not dropping:
            raise SystemExit(f"engines/{name}.toml: `drop` is not where it was")
        text = changed(text, dropping[0], "drop = []")
        text = changed(text, "\ncreate = [\n", f"\ncreate = [\n    {dropping[1]},\n")
    if bare:
        text, count = re.subn(r"^loaded = \[.*\]$", "loaded = []", text, flags=re.M)
        if count != 1:
            raise SystemExit(f"engines/{name}.toml: `loaded` is not where it was")
    if not build:
        text, count = re.subn(r"^build = \[(.*\]|\n(.*\n)*?\])$", "build = []", text, flags=re.M)
        if not count:
            raise SystemExit(f"engines/{name}.toml: `build` is not where it was")
    path = os.path.join(folder, f"{name}-{keep:d}{bare:d}{build:d}.toml")
    with open(path, "w") as file:
        file.write(text)
    return path


def changed(text, old, new):
    """`text` with one thing in place of another, which must be there once."""
    if text.count(old) != 1:
        raise SystemExit(f"the definition has {old!r} {text.count(old)} times, not once: perf/sql/annvil.py must follow it")
    return text.replace(old, new)


class Annvil:
    """The binary, asked for one run at a time."""

    def __init__(self, binary, data, limit, folder):
        self.binary, self.folder = binary, folder
        self.common = ["--dataset", data, "--no-report", "--cache-dir", os.path.join(folder, "cache")]
        if limit:
            self.common += ["--limit", str(limit)]
        self.out = os.path.join(folder, "run")

    def start(self, engine, address, extra):
        """Starts a run; its records are read by `points`."""
        shutil.rmtree(self.out, ignore_errors=True)
        command = [self.binary, "run", "--engine", engine, "--at", address, "--out", self.out, *self.common, *extra]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def points(self, phase):
        """The finished points of a phase."""
        try:
            with open(os.path.join(self.out, "records.jsonl")) as file:
                lines = [line for line in file if line.endswith("\n")]
        except OSError:
            return []
        return [point for point in map(json.loads, lines) if point["phase"] == phase]

    def wait_for(self, phase, process):
        """Waits until a phase has a point, or the process has ended."""
        until = time.monotonic() + LONGEST
        while not self.points(phase) and process.poll() is None and time.monotonic() < until:
            time.sleep(LOOK)

    def failed(self, process):
        """Ends with what the run said."""
        process.kill()
        raise SystemExit(f"{' '.join(process.args)}\nfailed with {process.wait()}: {process.stdout.read()[-3000:]}")

    def point(self, phase, process):
        """The one valid point of a phase."""
        points = self.points(phase)
        if len(points) != 1 or points[0]["status"] != "valid":
            self.failed(process)
        return points[0]

    def load(self, engine, address, workers):
        """Loads and stops there: seconds, rows a second, batch. The definition makes no index, so that nothing is
        left to break off in the server."""
        process = self.start(engine, address, ["--load-workers", str(workers), "--effort", "40", "--no-recall"])
        self.wait_for("load", process)
        point = self.point("load", process)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate()
        return {"seconds": point["load_seconds"], "rows_per_second": point["load_rows_per_second"], "batch": point["load_batch_rows"],
                "retries": point["load_retries"]}

    def search(self, engine, address, clients, case):
        """Loads, builds, asks with so many clients; the time of its client threads is also read from outside."""
        extra = ["--clients", str(clients), "--effort", str(case["effort"]), "--k", str(case["k"]), "--repeats", str(case["repeats"]),
                 "--min-window", f"{case['window']}s"]
        for name, value in case["params"].items():
            extra += ["--param", f"{name}={value}"]
        process = self.start(engine, address, extra)
        said = []
        reader = threading.Thread(target=lambda: said.append(process.stdout.read()))
        reader.start()
        self.wait_for("build", process)
        outside = threads_until_end(process)
        reader.join()
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(process.args)}\nfailed with {process.returncode}: {said[0][-3000:]}")
        return figures(self.point("sweep", process), clients, outside)


def figures(point, clients, outside):
    """What the client costs. `on_cpu_share` is of its threads' time in the windows, so it is the cost of queries alone;
    `process` is the whole process between its first and last sample, warm-up and buffers included."""
    throughput, asked = point["throughput"], point["sent"] + point["warmup_queries"]
    return {
        "throughput": throughput,
        "throughput_repeats": point["throughput_repeats"],
        "cpu_us": share(point, "on_cpu_share", clients, throughput),
        "process_cpu_us": share(point, "process_cpu_share", os.cpu_count(), throughput),
        "outside_cpu_us": outside / asked * 1e6 if outside else None,
        "queries": point["sent"],
        "recall": point["recall"],
        "client_share": point["client_share"],
        "cpu_wait_share": point["cpu_wait_share"],
        "latency_p50_us": point["latency_p50_ns"] / 1e3,
        "uses_index": point["uses_index"],
        "select": point["query_plan"],
    }


def share(point, name, of, throughput):
    """Microseconds of CPU for a query, from a share of `of` CPUs or threads."""
    return None if point[name] is None else point[name] * of / throughput * 1e6


def threads_until_end(process):
    """CPU seconds of the threads called client-*, from the kernel's own book, until the process ends. They connect, warm up,
    measure and end, so what is lost is at most what they did since the last look."""
    spent = {}
    folder = f"/proc/{process.pid}/task"
    while process.poll() is None:
        try:
            for thread in os.listdir(folder):
                with open(f"{folder}/{thread}/comm") as name:
                    if not name.read().startswith("client-"):
                        continue
                with open(f"{folder}/{thread}/schedstat") as times:
                    spent[thread] = int(times.read().split()[0]) / 1e9
        except OSError:
            # It ended while it was read, or this is no Linux.
            pass
        time.sleep(SAMPLE)
    return sum(spent.values())
