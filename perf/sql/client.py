"""What a client costs: Annvil, pgbench and psycopg 3 ask one PostgreSQL the same, one after the other, round after round.

Annvil makes the table, by a definition that differs from its own in that the table stays at the end; the others ask that
same table, so there is one index. Standard library only.
"""

import json
import os
import re
import subprocess
import time

import annvil
import servers

PAUSE = 0.5
CASE = {"k": 10, "effort": 40, "params": {"m": 16, "ef_construction": 64}, "repeats": 3, "window": 3}
QUICK = {"repeats": 2, "window": 0.5}
QUERIES = "perf_queries"


class Client:
    """A server, the table, and the clients that ask it."""

    def __init__(self, asked, paths, there, binary):
        self.case = CASE | (QUICK if asked.quick else {})
        self.seconds = self.case["repeats"] * self.case["window"]
        self.paths, self.there, self.server = paths, there, servers.Postgres()
        self.engine = annvil.definition(paths["root"], "pgvector", paths["work"], keep=True)
        self.annvil = annvil.Annvil(binary, asked.data, asked.limit, paths["work"])
        dim, file = there["dim"], there["files"]["queries"]
        self.server.psql(f"CREATE TABLE {QUERIES} (id bigint PRIMARY KEY, v vector({dim}) NOT NULL);\n"
                         f"\\copy {QUERIES} from '{file}' with (format binary)\nVACUUM ANALYZE {QUERIES};\n")
        self.table = None

    def annvil_asks(self, clients):
        """Annvil: loads, builds, asks."""
        found = self.annvil.search(self.engine, self.server.address, clients, self.case)
        self.table = self.server.ask("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'annvil\\_%'").strip()
        if not self.table or "\n" in self.table:
            raise SystemExit(f"the table that annvil left is not known: {self.table!r}")
        return found

    def settings(self):
        """What Annvil sets for its sessions, set for the others."""
        return [f"SET hnsw.ef_search = {self.case['effort']}", "SET hnsw.iterative_scan = relaxed_order",
                "SET hnsw.max_scan_tuples = 20000"]

    def statement(self, vector):
        """The SELECT of Annvil's definition."""
        return f"SELECT id FROM {self.table} ORDER BY v <=> {vector} LIMIT {self.case['k']}"

    def pgbench_asks(self, clients, threads):
        """pgbench: prepared, the query vector read from a table by a random id. Its CPU time is the whole process's."""
        script = os.path.join(self.paths["work"], "query.sql")
        with open(script, "w") as file:
            chosen = self.statement(f"(SELECT v FROM {QUERIES} WHERE id = :id)")
            file.write(f"\\set id random(0, {self.there['queries'] - 1})\n{chosen};\n")
        command = [self.server.beside("pgbench"), *self.server.where(), "-M", "prepared", "-n", "-f", script, "-c", str(clients),
                   "-j", str(threads), "-T", str(max(1, round(self.seconds))), "postgres"]
        options = " ".join("-c " + setting[4:].replace(" ", "") for setting in self.settings())
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=os.environ | {"PGOPTIONS": options})
        out, fault = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        rate, count = re.search(r"tps = ([\d.]+)", out), re.search(r"actually processed: (\d+)", out)
        if process.returncode != 0 or not rate or "number of failed transactions: 0 " not in out:
            raise SystemExit(f"pgbench failed with {process.returncode}: {fault}{out}")
        cpu, count = usage.ru_utime + usage.ru_stime, int(count[1])
        return {"throughput": float(rate[1]), "cpu_us": cpu / count * 1e6, "user_us": usage.ru_utime / count * 1e6, "queries": count}

    def psycopg_asks(self, clients):
        """psycopg 3: a process for each client; their CPU time in the window."""
        asked = {"where": f"host=127.0.0.1 port={self.server.port} user=postgres dbname=postgres", "settings": self.settings(),
                 "statement": self.statement("%s"), "vectors": self.there["files"]["vectors"], "clients": clients}
        script = os.path.join(self.paths["here"], "psycopg_client.py")
        each = [subprocess.Popen([self.paths["python"], script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}) for _ in range(clients)]
        for number, process in enumerate(each):
            said(process, json.dumps(asked | {"client": number}))
        for process in each:
            heard(process)
        for process in each:
            said(process, self.seconds)
        found = [json.loads(heard(process)) for process in each]
        for process in each:
            process.stdin.close()
            process.wait()
        queries = sum(one["queries"] for one in found)
        if sum(one["ids"] for one in found) != queries * self.case["k"]:
            raise SystemExit("psycopg got answers that are not k rows long")
        return {"throughput": sum(one["queries"] / one["seconds"] for one in found), "queries": queries,
                "cpu_us": sum(one["cpu_seconds"] for one in found) / queries * 1e6,
                "about": f"psycopg {found[0]['version']} ({found[0]['implementation']})"}

    def sides(self, clients):
        """All sides by name. Annvil comes first, because it makes the table."""
        sides = {"annvil": lambda: self.annvil_asks(clients), "pgbench": lambda: self.pgbench_asks(clients, 1)}
        if clients > 1:
            threads = min(clients, os.cpu_count())
            sides["pgbench-j"] = lambda: self.pgbench_asks(clients, threads)
        return sides | {"psycopg": lambda: self.psycopg_asks(clients)}


def said(process, text):
    """A line to a client."""
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


def heard(process):
    """A line from a client."""
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"psycopg_client.py ended with {process.wait()}")
    return line


def measure(asked, paths, there, binary, say):
    """All counts of clients, round after round."""
    client = Client(asked, paths, there, binary)
    runs = {count: {} for count in asked.clients}
    with client.server:
        for number in range(asked.rounds):
            for count in asked.clients:
                for side, run in client.sides(count).items():
                    time.sleep(PAUSE)
                    runs[count].setdefault(side, []).append(run())
                last = ", ".join(f"{side} {r[-1]['throughput']:.0f}/s {r[-1]['cpu_us']:.0f} us" for side, r in runs[count].items())
                say(f"client: round {number + 1}/{asked.rounds}, clients {count}: {last}")
        plan = client.server.ask(f"{'; '.join(client.settings())}; EXPLAIN " + client.statement(f"(SELECT v FROM {QUERIES} WHERE id = 1)"))
        if "Index Scan using " + client.table not in plan:
            raise SystemExit(f"pgbench's SELECT does not use the index: {plan}")
        return {"case": client.case, "server": client.server.version, "settings": servers.POSTGRES, "runs": runs,
                "select": client.statement("$1"), "plan": plan}
