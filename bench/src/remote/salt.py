# Runs `true` by Salt's LocalClient each time a line comes in, and says how many microseconds it took.
import sys
import time

import salt.client
import salt.exceptions

configuration, minion = sys.argv[1:]
deadline = time.monotonic() + 80


def connect():
    while time.monotonic() < deadline:
        try:
            # A new one each time: it reads the master's key when it is made, and the master has to make that first.
            client = salt.client.LocalClient(configuration)
            if client.cmd(minion, "test.ping", timeout=2).get(minion):
                return client
        except salt.exceptions.SaltException:
            pass
        time.sleep(0.5)
    sys.exit("the minion did not come up in time")


client = connect()
print("ready", flush=True)
while sys.stdin.readline():
    start = time.perf_counter_ns()
    answer = client.cmd(minion, "cmd.run", ["true"], full_return=True)
    micros = (time.perf_counter_ns() - start) // 1000
    print(micros if answer.get(minion, {}).get("retcode") == 0 else f"answered {answer}", flush=True)
