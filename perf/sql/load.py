"""Loading: Annvil against psql's \\copy of a binary file, and against a C program with MariaDB's own library, on the same
rows and the same kind of table, without an index. Standard library only.

Annvil's load time holds what the definition does after the rows are in (`loaded`: VACUUM ANALYZE, ANALYZE TABLE), because
a load is done when the planner knows the rows. Here it is measured with and without, and the opponents likewise.
"""

import json
import os
import re
import shutil
import subprocess
import time

import annvil
import servers

PAUSE = 0.5
TABLE = "perf_rows"
WORKERS = [1, 2]


class Postgres:
    """PostgreSQL: COPY BINARY on both sides."""

    name = "postgres"
    ending = "VACUUM ANALYZE"

    def __init__(self, asked, paths, there, binary):
        self.there, self.server = there, servers.Postgres()
        self.about = "psql \\copy … with (format binary), from a file made before"
        self.settings = servers.POSTGRES
        self.cases = [(workers, None) for workers in WORKERS]
        self.annvil = Loader(asked, paths, binary, "pgvector", self.server)

    def fresh(self):
        """Nothing left of the load before."""
        left = self.server.ask("SELECT relname FROM pg_class WHERE relkind = 'r' AND (relname LIKE 'annvil\\_%' OR "
                               f"relname = '{TABLE}')").split()
        self.server.psql("".join(f"DROP TABLE {name};\n" for name in left) + "CHECKPOINT;\n")

    def opponents(self, workers, _batch):
        """psql, one for each worker, each with its part of the rows."""
        return {"psql": lambda: self.psql(workers)}

    def psql(self, workers):
        """Time of the slowest \\copy as psql's \\timing has it, and of what is done afterwards."""
        self.server.psql(f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, v vector({self.there['dim']}) NOT NULL);\n")
        parts = ["rows"] if workers == 1 else [f"half-{number}" for number in range(workers)]
        command = "\\timing on\n\\copy {} (id, v) from '{}' with (format binary)\n"
        begun = [self.server.psql(None, wait=False) for _ in parts]
        for process, part in zip(begun, parts):
            process.stdin.write(command.format(TABLE, self.there["files"][part]))
            process.stdin.close()
            process.stdin = None
        seconds = max(timed(self.server.answer(process, None)) for process in begun)
        ending = timed(self.server.psql(f"\\timing on\nVACUUM ANALYZE {TABLE};\n"))
        if int(self.server.ask(f"SELECT count(*) FROM {TABLE}")) != self.there["rows"]:
            raise SystemExit("psql did not load all rows")
        return {"seconds": seconds, "ending": ending}


class MariaDb:
    """MariaDB: prepared inserts of many rows, raw float32 on both sides."""

    name = "mariadb"
    ending = "ANALYZE TABLE"

    def __init__(self, asked, paths, there, binary):
        self.there, self.server = there, servers.MariaDb()
        self.program = compiled(paths)
        self.settings = servers.MARIADB
        self.about = "load_mariadb.c with libmariadb"
        self.cases = [(1, 1000)]
        self.annvil = Loader(asked, paths, binary, "mariadb", self.server)

    def sql(self, text):
        """Statements through the command-line client."""
        done = subprocess.run(self.server.client(), input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"mariadb: {done.stderr.strip()}")
        return done.stdout

    def fresh(self):
        """Nothing left of the load before."""
        left = self.sql("SHOW TABLES;").split()
        self.sql("".join(f"DROP TABLE {name};\n" for name in left))

    def opponents(self, _workers, batch):
        """Both ways of the C program."""
        return {way: lambda way=way: self.c(way, batch) for way in ("multi", "bulk")}

    def c(self, way, batch):
        """The C program's own clock, and the time of what is done afterwards."""
        self.sql(f"CREATE TABLE {TABLE} (id BIGINT PRIMARY KEY, v VECTOR({self.there['dim']}) NOT NULL) ENGINE=InnoDB;")
        command = [self.program, "127.0.0.1", str(self.server.port), "root", "annvil", TABLE, self.there["files"]["raw"],
                   str(self.there["rows"]), str(self.there["dim"]), str(batch), way]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"load_mariadb {way}: {done.stderr.strip()}")
        found = json.loads(done.stdout)
        begun, ended = self.sql(f"SELECT NOW(6) + 0; ANALYZE TABLE {TABLE}; SELECT NOW(6) + 0;").split("\n")[0:3:2]
        found["ending"] = clock(ended) - clock(begun)
        if int(self.sql(f"SELECT COUNT(*) FROM {TABLE};")) != self.there["rows"]:
            raise SystemExit(f"load_mariadb {way} did not load all rows")
        return found


class Loader:
    """Annvil with all that its definition does after the rows are in, and with nothing of that."""

    def __init__(self, asked, paths, binary, engine, server):
        self.annvil = annvil.Annvil(binary, asked.data, asked.limit, paths["work"])
        self.address = server.address
        self.whole, self.bare = (annvil.definition(paths["root"], engine, paths["work"], bare=bare, build=False) for bare in (False, True))

    def sides(self, workers):
        """Both definitions."""
        return {"annvil": lambda: self.annvil.load(self.whole, self.address, workers),
                "annvil-bare": lambda: self.annvil.load(self.bare, self.address, workers)}


def timed(text):
    """Seconds of the one command that psql timed."""
    times = re.findall(r"^Time: ([\d.]+) ms", text, re.M)
    if len(times) != 1:
        raise SystemExit(f"psql gave {len(times)} times, not one: {text}")
    return float(times[0]) / 1e3


def clock(text):
    """Seconds of the day from MariaDB's 20261130123456.789012."""
    hours, minutes, seconds = text[8:10], text[10:12], text[12:]
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def compiled(paths):
    """The C program, made anew where its source is newer."""
    source, program = os.path.join(paths["here"], "load_mariadb.c"), os.path.join(paths["perf"], "load_mariadb")
    config = shutil.which("mariadb_config")
    if not config:
        raise SystemExit("no mariadb_config: install MariaDB's client library (Debian: libmariadb-dev), or leave it out by --only")
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        flags = [subprocess.run([config, what], capture_output=True, text=True, check=True).stdout.split() for what in ("--cflags", "--libs")]
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", *flags[0], source, "-o", program, *flags[1]], check=True)
    return program


def measure(kind, asked, paths, there, binary, say):
    """One server: all its cases, round after round, after one of each that does not count."""
    bench = kind(asked, paths, there, binary)
    cases = []
    with bench.server:
        for workers, batch in bench.cases:
            sides = bench.annvil.sides(workers) | bench.opponents(workers, batch)
            runs = {side: [] for side in sides}
            for number in range(asked.rounds + 1):
                for side, run in sides.items():
                    bench.fresh()
                    time.sleep(PAUSE)
                    took = run()
                    if number:
                        runs[side].append(took)
                last = ", ".join(f"{side} {r[-1]['seconds']:.2f} s" for side, r in runs.items() if r) or "warm"
                say(f"load {bench.name}, workers {workers}: round {number}/{asked.rounds}: {last}")
            cases.append({"workers": workers, "batch": runs["annvil"][0]["batch"], "runs": runs})
        return {"server": bench.server.version, "about": bench.about, "settings": bench.settings, "ending": bench.ending,
                "cases": cases}


KINDS = {"postgres": Postgres, "mariadb": MariaDb}
