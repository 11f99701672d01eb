"""What the scripts that try the service beside other programs share: starting programs, waiting for them, the first account."""

import http.client
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "debug")
# Seconds. Far longer than it takes, because what is found must not depend on how busy the machine is.
PATIENCE = 300
PASSWORD = "correct horse battery"


class Failed(Exception):
    pass


def check(holds, problem):
    if not holds:
        raise Failed(problem)


def eventually(attempt, problem):
    """Returns the first true result of `attempt`."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        outcome = attempt()
        if outcome:
            return outcome
        time.sleep(0.05)
    raise Failed(problem)


def free_port():
    """A port for a program that starts later. It is below those that the kernel gives to connections and to programs that ask for
    any port: one of those may be taken before the program starts."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        end = int(file.read().split()[0])
    for _ in range(1000):
        with socket.socket() as taken:
            try:
                taken.bind(("127.0.0.1", random.randrange(10000, end) if end > 20000 else 0))
            except OSError:
                continue
            return taken.getsockname()[1]
    raise Failed("no port is free")


def program(name):
    found = shutil.which(name, path=os.path.join(ROOT, "target", "test-tools", "bin") + ":/usr/sbin:" + os.environ["PATH"])
    check(found, f"{name} is missing: scripts/test-setup installs it")
    return found


class Run:
    """Programs that were started, and end with the block."""

    def __init__(self, folder):
        self.folder, self.started = folder, []

    def start(self, name, command, environment=None):
        log = open(os.path.join(self.folder, f"{name}.log"), "ab")
        self.started.append(subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=os.environ | (environment or {})))
        return self.started[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.terminate()
        for process in reversed(self.started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start_service(run, *arguments):
    """Its port, when it serves and has its first account: `ada` with `PASSWORD`."""
    data = os.path.join(run.folder, "data")
    service = run.start("service", [os.path.join(PROGRAMS, "signalbox"), "--listen", "127.0.0.1:0", "--data-dir", data, *arguments])

    def announced():
        check(service.poll() is None, "the service did not start")
        with open(os.path.join(run.folder, "service.log")) as log:
            return re.search(r"^listening on http://127.0.0.1:(\d+)", log.read(), re.MULTILINE)

    port = int(eventually(announced, "the service did not start")[1])
    with open(os.path.join(run.folder, "service.log")) as log:
        code = re.search(r"setup code (\S+)", log.read())
    check(code, "the log has no setup code")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    user = {"email": "ada@example.com", "username": "ada", "password": PASSWORD, "password_confirm": PASSWORD,
            "full_name": "Ada Lovelace", "setup_code": code[1]}
    connection.request("POST", "/api/v1/auth/register", json.dumps(user), {"Content-Type": "application/json"})
    check(connection.getresponse().status in (200, 201), "the first account could not be made")
    connection.close()
    return port


def show_logs(folder):
    """The ends of the logs of what `Run` started."""
    for log in sorted(os.listdir(folder)):
        if log.endswith(".log"):
            with open(os.path.join(folder, log), errors="replace") as file:
                print(f"-- the end of {log}:", *file.readlines()[-15:], sep="\n", file=sys.stderr)


def write_private(path, text):
    """A key that others can read is refused."""
    with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(text)
