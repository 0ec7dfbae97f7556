"""Annvil's side: the binary, one process a measurement, each with an empty cache. Standard library only."""

import json
import os
import resource
import subprocess
import tempfile
import time

import cases


class Annvil:
    """One case asked of the binary."""

    def __init__(self, binary, case, there, threads, folder):
        self.binary, self.case, self.folder = binary, case, folder
        self.asked = [there["files"]["base"], "--metric", case.metric, "--k", str(cases.K)]
        self.asked += ["--threads", str(threads)]
        queries = there["query_files"][str(case.queries)]
        if queries:
            self.asked += ["--queries", queries]
        self.filters = case.filters
        if self.filters:
            self.asked += ["--columns", there["files"]["columns"]]
        self.kept = None

    def run(self, extra=()):
        """One measurement: all filters in one call. The cache it filled stays for `answers`."""
        self.forget()
        # Goes with the process too, however that ends.
        self.kept = tempfile.TemporaryDirectory(prefix="cache-", dir=self.folder)
        filters = [part for one in self.filters for part in ("--filter", cases.filter_text(one))]
        found, process = self.call([*self.asked, *filters, *extra])
        # One search answers all filters and its time stands at each; a binary without that figure
        # answered them one after the other.
        if found[0].get("search_seconds") is not None:
            seconds, clock = found[0]["search_seconds"], "search"
        else:
            seconds, clock = sum(one["seconds"] for one in found), "call"
        return process | {
            "seconds": seconds,
            "clock": clock,
            "filter_seconds": found[0].get("filter_seconds"),
            "method": found[0].get("method"),
            "kernel": found[0].get("kernel"),
        }

    def answers(self):
        """Files with the ids of the last measurement, one a filter, taken from its cache."""
        files = []
        for number, one in enumerate(self.filters or [None]):
            file = os.path.join(self.cache, f"answer-{number}.ibin")
            chosen = ["--filter", cases.filter_text(one)] if one else []
            found, _ = self.call([*self.asked, *chosen, "--out", file])
            if found[0].get("search_seconds") is not None or found[0]["origin"] == "computed":
                raise SystemExit(f"{self.case.name}: the answer to check was computed anew, not that measured")
            files.append(file)
        return files

    def call(self, arguments):
        """Runs the binary; its values, and what the process took."""
        command = [self.binary, "truth", *arguments, "--json", "--cache-dir", self.cache]
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, talk = process.communicate()
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\nfailed with {process.returncode}: {talk.strip()}")
        values = json.loads(out)
        return values if isinstance(values, list) else [values], {"whole_seconds": wall, "whole_cpu_seconds": cpu}

    @property
    def cache(self):
        """The folder of the last measurement's cache, which also takes files that go with it."""
        return self.kept.name

    def forget(self):
        """Removes the cache of the last measurement."""
        if self.kept:
            self.kept.cleanup()
            self.kept = None


def options(binary):
    """Arguments that hold the binary to one way of searching, by side; none where its help knows no such option.

    This is the one place that knows their names.
    """
    said = subprocess.run([binary, "truth", "--help"], capture_output=True, text=True).stdout
    if not said:
        raise SystemExit(f"{binary} says nothing to `truth --help`: build it anew")
    method = "--method" in said
    plan = "--filter-plan" in said
    return {
        "f32": ["--method", "f32"] if method else None,
        "plan:scan": ["--filter-plan", "scan"] if plan else None,
        "plan:rows": ["--filter-plan", "rows"] if plan else None,
    }
