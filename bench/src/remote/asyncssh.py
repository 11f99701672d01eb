# Runs `true` over one standing SSH connection each time a line comes in, and says how many microseconds it took.
import asyncio
import sys
import time

import asyncssh


async def main(port, user, key):
    options = {"username": user, "client_keys": [key], "known_hosts": None, "agent_path": None, "config": None}
    async with asyncssh.connect("127.0.0.1", int(port), **options) as connection:
        loop = asyncio.get_running_loop()
        print("ready", flush=True)
        while await loop.run_in_executor(None, sys.stdin.readline):
            start = time.perf_counter_ns()
            result = await connection.run("true")
            micros = (time.perf_counter_ns() - start) // 1000
            print(micros if result.exit_status == 0 else f"exit status {result.exit_status}", flush=True)


asyncio.run(main(*sys.argv[1:]))
