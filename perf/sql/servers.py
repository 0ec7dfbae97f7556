"""The two servers, started here with fixed settings and stopped at the end. Standard library only."""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

# Both sides of every comparison meet the same server, so these only have to be large enough that it does
# nothing of its own in between: no checkpoint, no autovacuum, nothing read from disk.
POSTGRES = {
    "shared_buffers": "1GB", "maintenance_work_mem": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "1h",
    "autovacuum": "off", "max_connections": "50",
}
MARIADB = {
    "innodb-buffer-pool-size": "1G", "innodb-log-file-size": "2G", "max-allowed-packet": "1G", "mhnsw-max-cache-size": "1G",
    "skip-name-resolve": "ON", "skip-ssl": "ON",
}
# What a server of root's runs as; both refuse to be root.
OTHER_USER = "nobody"
START_WITHIN, STOP_WITHIN = 60, 60


def find(variable, server, program):
    """The program of a server: what the variable names, else what `cargo xtask servers` keeps."""
    if os.environ.get(variable):
        return os.environ[variable]
    kept = os.environ.get("ANNVIL_SERVERS")
    if not kept and os.geteuid() == 0:
        kept = "/var/cache/annvil/servers"
    if not kept:
        kept = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "annvil", "servers")
    path = os.path.join(kept, server, "bin", program)
    if not os.path.exists(path):
        raise SystemExit(f"no {program}: {variable} is not set and {path} is not there; run cargo xtask servers")
    return path


class Server:
    """A server in a folder of its own, on a free port of the loopback."""

    def __init__(self, program):
        self.program, self.process = program, None
        self.folder = tempfile.mkdtemp(prefix="annvil-perf-sql-")
        self.user = {}
        if os.geteuid() == 0:
            self.user = {"user": OTHER_USER, "group": pwd.getpwnam(OTHER_USER).pw_gid, "extra_groups": []}
            shutil.chown(self.folder, OTHER_USER)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "log")
        # Also where this program fails before it comes to a `with`.
        atexit.register(self.stop)

    def beside(self, name):
        """A program that lies beside the server's."""
        return os.path.join(os.path.dirname(self.program), name)

    def as_user(self, command, text=""):
        """Runs a command as the server's user, with a text to read."""
        done = subprocess.run(command, input=text, text=True, capture_output=True, cwd=self.folder, **self.user)
        if done.returncode != 0:
            raise SystemExit(f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def start(self, command, ready):
        """Starts the server and waits until it answers."""
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **self.user)
        until = time.monotonic() + START_WITHIN
        while not ready():
            if self.process.poll() is not None or time.monotonic() > until:
                said = self.said()
                self.stop()
                raise SystemExit(f"{self.program} did not start: {said}")
            time.sleep(0.1)

    def said(self):
        """The end of the server's log."""
        with open(self.log) as log:
            return log.read()[-3000:]

    def stop(self):
        """Stops the server and removes its folder."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(self.STOP)
            try:
                self.process.wait(STOP_WITHIN)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind and self.process.poll() is not None:
            print(f"{self.program} ended with {self.process.returncode}: {self.said()}", file=sys.stderr)
        self.stop()


class Postgres(Server):
    """PostgreSQL with pgvector."""

    STOP = signal.SIGINT

    def __init__(self):
        super().__init__(find("ANNVIL_POSTGRES", "postgresql-18", "postgres"))
        self.as_user([self.beside("initdb"), "-D", self.data, "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8"])
        command = [self.program, "-D", self.data, "-p", str(self.port), "-c", "listen_addresses=127.0.0.1",
                   "-c", "unix_socket_directories="]
        for name, value in POSTGRES.items():
            command += ["-c", f"{name}={value}"]
        probe = [self.beside("psql"), *self.where(), "-c", "select 1"]
        self.start(command, lambda: subprocess.run(probe, capture_output=True).returncode == 0)
        self.ask("CREATE EXTENSION vector")
        self.version = self.ask("SELECT 'PostgreSQL ' || current_setting('server_version') || ', pgvector ' || extversion "
                                "FROM pg_extension WHERE extname = 'vector'").strip()

    @property
    def address(self):
        """For Annvil."""
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def where(self):
        """For psql and pgbench."""
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]

    def psql(self, commands, wait=True):
        """psql with commands from its standard input, which stops at the first fault."""
        command = [self.beside("psql"), *self.where(), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not wait:
            return process
        return self.answer(process, commands)

    def answer(self, process, commands):
        """What psql says to commands."""
        out, fault = process.communicate(commands)
        if process.returncode != 0:
            raise SystemExit(f"psql: {fault.strip()}")
        return out

    def ask(self, statement):
        """The answer to one statement as text."""
        return self.psql(statement + ";\n")


class MariaDb(Server):
    """MariaDB."""

    STOP = signal.SIGTERM
    SCRIPTS = ["mariadb_system_tables.sql", "mariadb_performance_tables.sql", "mariadb_system_tables_data.sql",
               "fill_help_tables.sql", "maria_add_gis_sp_bootstrap.sql", "mariadb_sys_schema.sql"]

    def __init__(self):
        super().__init__(find("ANNVIL_MARIADBD", "mariadb-11.8", "mariadbd"))
        common = ["--no-defaults", f"--datadir={self.data}", f"--tmpdir={self.folder}"]
        self.as_user(["mkdir", self.data])
        texts = ["create database if not exists mysql;\ncreate database annvil;\nuse mysql;\n"]
        for name in self.SCRIPTS:
            with open(os.path.join(self.share(), name)) as file:
                texts.append(file.read())
        # Only this machine can reach it; mariadb's own start-up gives root no password either.
        self.as_user([self.program, *common, "--bootstrap", "--log-warnings=0", "--enforce-storage-engine=",
                      "--max-allowed-packet=8M"], "".join(texts))
        command = [self.program, *common, f"--port={self.port}", "--bind-address=127.0.0.1", "--socket="]
        command += [f"--{name}={value}" for name, value in MARIADB.items()]
        # Asked through its client: a bare connection to a free port of the loopback may meet itself.
        probe = [*self.client(), "-e", "SELECT 1"]
        self.start(command, lambda: subprocess.run(probe, capture_output=True).returncode == 0)
        said = self.as_user([self.program, "--no-defaults", "--version"])
        self.version = "MariaDB " + said.split("Ver", 1)[-1].split("for")[0].strip()

    def client(self):
        """The command-line client."""
        return [self.beside("mariadb"), "--no-defaults", "-h", "127.0.0.1", "-P", str(self.port), "-u", "root", "--skip-ssl", "-N", "annvil"]

    def share(self):
        """The folder with the server's own scripts."""
        root = os.path.dirname(os.path.dirname(os.path.abspath(self.program)))
        for folder in ("share/mariadb", "share/mysql", "share"):
            if os.path.exists(os.path.join(root, folder, self.SCRIPTS[0])):
                return os.path.join(root, folder)
        raise SystemExit(f"{self.program}: no {self.SCRIPTS[0]} below {root}/share")

    @property
    def address(self):
        """For Annvil."""
        return f"mysql://root@127.0.0.1:{self.port}/annvil"
