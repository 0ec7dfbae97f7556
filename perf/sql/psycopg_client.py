"""One client of psycopg 3, as fast as it goes: a prepared statement, binary both ways, pgvector's adapter for NumPy.

A process of its own for each client, since threads would share one interpreter lock. JSON in: where, statement,
settings, vectors, client, clients. Says "ready" when warm, reads the number of seconds, answers in JSON.
"""

import json
import sys
import time

import numpy
import psycopg
from pgvector.psycopg import register_vector

WARM = 200


def main():
    """See the module."""
    asked = json.loads(sys.stdin.readline())
    connection = psycopg.connect(asked["where"], autocommit=True)
    register_vector(connection)
    for setting in asked["settings"]:
        connection.execute(setting)
    queries = numpy.load(asked["vectors"])
    mine = [queries[i] for i in range(asked["client"], len(queries), asked["clients"])]
    cursor, statement = connection.cursor(binary=True), asked["statement"]

    def search(query):
        cursor.execute(statement, (query,), prepare=True)
        return [row[0] for row in cursor.fetchall()]

    for number in range(WARM):
        search(mine[number % len(mine)])
    print("ready", flush=True)
    seconds = float(sys.stdin.readline())
    answers, count = [], 0
    begun, cpu = time.perf_counter(), time.process_time()
    until = begun + seconds
    while time.perf_counter() < until:
        answers.append(search(mine[count % len(mine)]))
        count += 1
    took = {"queries": count, "seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu}
    print(json.dumps(took | {"ids": sum(map(len, answers)), "version": psycopg.__version__,
                             "implementation": psycopg.pq.__impl__}), flush=True)


if __name__ == "__main__":
    main()
