#!/usr/bin/env python3
"""An agent for Signalbox in Python 3.10 or newer, for Linux, with nothing but the standard library:

    python3 agent.py --url https://signalbox.example.com --key-file agent.key --count /var/spool/mail

It sends metrics of this machine and a series of its own, the number of files in a directory. With --commands it also
runs commands. It needs the two files beside it. docs/reference/protocol.md explains the messages. Unlike
signalbox-agent it keeps samples and results in memory only, and knows no logs, terminals and containers.
"""
import argparse, asyncio, contextlib, json, os, platform, random, signal, sys, time
from collections import deque
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path

from shell_command import ShellCommand
from small_websocket import WebSocket

KEPT_SAMPLES = 17_280  # a day of one every 5 s
SAMPLES_PER_MESSAGE, MESSAGES_IN_FLIGHT = 256, 4
MOST_COMMANDS = 50  # that run, or whose result was not acknowledged


class Machine:
    """Reads what a sample must have, and the series."""

    def __init__(self, directory):
        self.directory, self.cpu = directory, self.cpu_times()
        self.series = {"id": 0, "name": "directory_entries", "unit": "count", "kind": "gauge", "target": directory,
                       "help": "Files and directories in a directory."}

    def sample(self):
        before, self.cpu = self.cpu, self.cpu_times()
        idle, total = self.cpu[0] - before[0], self.cpu[1] - before[1]
        memory = {name: 1024 * int(value.split()[0]) for name, value in pairs("/proc/meminfo")}
        root = os.statvfs("/")
        used, free = (root.f_blocks - root.f_bfree) * root.f_frsize, root.f_bavail * root.f_frsize
        network = [(name, counts.split()) for name, counts in pairs("/proc/net/dev") if name != "lo"]
        sample = {
            "timestamp": now(),
            "cpu_percent": min(100, max(0, 100 - 100 * idle / max(1, total))),
            "memory_percent": 100 - 100 * memory["MemAvailable"] / memory["MemTotal"],
            "memory_total": memory["MemTotal"], "memory_used": memory["MemTotal"] - memory["MemAvailable"],
            "disk_usage": [{"path": "/", "total": root.f_blocks * root.f_frsize, "used": used, "free": free,
                            "percent": 100 * used / max(1, used + free)}],
            "network": [{"interface": name, "bytes_recv": int(counts[0]), "bytes_sent": int(counts[8])}
                        for name, counts in network],
        }
        try:
            return sample | {"values": [[self.series["id"], len(os.listdir(self.directory))]]}
        except OSError:  # it is not gone: alerts about it stay open
            return sample | {"unread": [{"list": "series", "name": f"directory_entries:{self.directory}"}]}

    @staticmethod
    def cpu_times():
        """Returns the idle time and all time of the processors since boot, in ticks."""
        times = [int(ticks) for ticks in Path("/proc/stat").read_text().split()[1:9]]  # guests are part of these
        return times[3] + times[4], sum(times)


def pairs(path):
    """Returns the lines `name: value` of a file."""
    lines = [line.partition(":") for line in Path(path).read_text().splitlines()]
    return [(name.strip(), value) for name, colon, value in lines if colon]


def log(text):
    print(text, file=sys.stderr, flush=True)


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Agent:
    """What outlives a connection."""

    def __init__(self, options, key):
        self.url, self.key, self.interval, self.may_run = options.url, key, options.interval, options.commands
        self.machine, self.changed = Machine(options.count), asyncio.Event()
        self.samples, self.number, self.seq = deque(maxlen=KEPT_SAMPLES), 0, 0  # (number, JSON), oldest first
        self.commands, self.acknowledged = {}, deque(maxlen=1_000)

    async def measure(self):
        while True:
            await asyncio.sleep(self.interval - time.time() % self.interval)
            self.number += 1
            try:
                self.samples.append((self.number, json.dumps(self.machine.sample())))
                self.changed.set()
            except OSError as error:
                log(f"took no sample: {error}")

    async def stay_connected(self):
        window = 0.5
        while True:
            began, code = time.monotonic(), None
            try:
                await Session(self).run()
            except Exception as error:  # whatever it is, an agent comes back
                log(f"not connected: {error!r}")
                code = getattr(error, "code", None)  # that of a Closed
            if code in (4401, 4404):  # the key is refused, or the server was deleted
                return 3
            if time.monotonic() - began > 30:
                window = 0.5
            if code in (1012, 1013):  # the service restarts, or is overloaded
                window = max(window, 5)
            # Another agent has a key of this server. To come back soon would be a fight that neither wins.
            pause = 3_600 if code == 4409 else 0
            # Full jitter: many agents that lost one service come back spread out.
            await asyncio.sleep(pause + random.uniform(0, window))
            window = min(60, 2 * window)


class Session:
    """One connection."""

    def __init__(self, agent):
        self.agent, self.is_described = agent, False
        self.sent, self.in_flight = 0, deque()  # the last sample's number; (seq, its last sample's number)
        self.told, self.answers = {}, deque()  # how many pieces of each command were sent; responses to send

    async def run(self):
        agent = self.agent
        about = {"version": "python-1", "hostname": platform.node(), "os": platform.system(),
                 "kernel": platform.release(), "arch": platform.machine(), "cpu_count": os.cpu_count(),
                 "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                 "capabilities": ["metrics", "commands"] if agent.may_run else ["metrics"]}
        opening = WebSocket.open(agent.url, "/api/v1/agents/ws")
        with contextlib.closing(await asyncio.wait_for(opening, 10)) as self.socket:
            await self.socket.send("auth", {
                "api_key": agent.key, "protocol": 1, "agent": about, "sent_at": now(),
                "sample_interval_seconds": agent.interval, "commands": list(agent.commands)})
            _, answer = await asyncio.wait_for(self.socket.receive(), 10)
            if not answer["success"]:
                await self.socket.receive()  # the close code says what to do
            agent.interval = answer["sample_interval_seconds"]
            log(f"connected to server {answer['server_id']}")
            speaking = asyncio.create_task(self.speak())
            try:
                await asyncio.gather(self.listen(), speaking)
            finally:
                speaking.cancel()

    async def speak(self):
        with contextlib.suppress(ConnectionError):  # listen() knows why
            while True:
                self.agent.changed.clear()
                for kind, data in self.due():
                    await self.socket.send(kind, data)
                await self.agent.changed.wait()

    def due(self):
        """Yields what this connection has not sent yet."""
        agent = self.agent
        while self.answers:
            yield "response", self.answers.popleft()
        if not self.is_described:
            self.is_described = True
            yield "series", {"series": [agent.machine.series]}
        while len(self.in_flight) < MESSAGES_IN_FLIGHT:
            batch = list(islice((one for one in agent.samples if one[0] > self.sent), SAMPLES_PER_MESSAGE))
            if not batch:
                break
            agent.seq += 1
            self.sent = batch[-1][0]
            self.in_flight.append((agent.seq, self.sent))
            yield "metrics", {"seq": agent.seq, "sent_at": now(), "samples": [json.loads(text) for _, text in batch]}
        for command in list(agent.commands.values()):
            if command.id not in agent.commands:
                continue  # acknowledged by now
            pieces = command.pieces if command.result else command.pieces[:command.live]
            for piece in pieces[self.told.setdefault(command.id, 0):]:
                self.told[command.id] += 1
                yield "command_output", piece
            if command.result and self.told[command.id] == len(command.pieces):
                self.told[command.id] += 1  # the result, once per connection
                yield "command_result", command.result

    async def listen(self):
        agent = self.agent
        while True:
            kind, data = await self.socket.receive()
            match kind:
                case "ack":
                    while self.in_flight and self.in_flight[0][0] <= data["seq"]:
                        _, durable = self.in_flight.popleft()
                        while agent.samples and agent.samples[0][0] <= durable:
                            agent.samples.popleft()
                    agent.changed.set()
                case "execute":
                    await self.execute(**data)
                case "cancel":
                    if command := agent.commands.get(data["command_id"]):
                        command.end("cancelled")
                case "result_ack":
                    if (command := agent.commands.get(data["command_id"])) and command.result:
                        agent.acknowledged.append(command.id)
                        del agent.commands[command.id]
                        self.told.pop(command.id, None)
                case "request":
                    self.refuse(data["request_id"], "agent_refused", "this agent answers no requests")
                case "logs_start" | "terminal_start":
                    self.refuse(data["stream_id"], "agent_refused", "this agent has no logs and terminals")

    async def execute(self, command_id, command, timeout_seconds, stdin=None, by=None, **_):
        agent = self.agent
        if command_id in agent.commands or command_id in agent.acknowledged:
            return  # at most once, whatever is sent twice
        # The policy: this machine decides, and nobody else.
        if not agent.may_run:
            return self.refuse(command_id, "agent_refused", "this agent runs no commands")
        if len(agent.commands) >= MOST_COMMANDS:
            return self.refuse(command_id, "agent_busy", "this agent has too many commands")
        log(f"runs for {by}: {command}")
        agent.commands[command_id] = ShellCommand(command_id, agent.changed)
        try:
            await agent.commands[command_id].start(command, stdin, timeout_seconds)
        except OSError as error:
            del agent.commands[command_id]
            self.refuse(command_id, "agent_error", str(error))

    def refuse(self, of, code, detail):
        self.answers.append({"request_id": of, "ok": False, "error": {"code": code, "detail": detail}})
        self.agent.changed.set()


async def main():
    parser = argparse.ArgumentParser(description="An agent for Signalbox.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--key-file", required=True)
    parser.add_argument("--interval", type=float, default=5, help="seconds between two samples")
    parser.add_argument("--count", default="/tmp", help="the directory whose entries are counted")
    parser.add_argument("--commands", action="store_true", help="run the commands that the service sends")
    options = parser.parse_args()
    agent = Agent(options, Path(options.key_file).read_text().strip())
    measuring = asyncio.create_task(agent.measure())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    try:
        return await agent.stay_connected()
    except asyncio.CancelledError:
        return 0
    finally:
        measuring.cancel()
        await asyncio.gather(*(command.stop() for command in agent.commands.values()))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
