"""One run of a shell command: its output, its timeout, its result."""
import asyncio, codecs, contextlib, os, signal, tempfile, time

HALF_OUTPUT = 512 << 10  # bytes that are kept of the beginning of an output, and as many of its end
MOST_PIECES = 2_000  # of each half
GRACE = 2  # seconds from SIGTERM to SIGKILL


class ShellCommand(asyncio.SubprocessProtocol):
    """A command that runs, or that has ended and whose result was not acknowledged."""

    def __init__(self, command_id, changed):
        self.id, self.changed, self.began = command_id, changed, time.monotonic()
        self.pieces, self.live, self.size, self.is_cut = [], 0, 0, False
        self.decoders = {fd: codecs.getincrementaldecoder("utf-8")("replace") for fd in (1, 2)}
        self.transport = self.ending = self.result = None

    async def start(self, text, stdin, timeout_seconds):
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryFile() as file:  # a command that does not read its input holds up nobody
            file.write((stdin or "").encode())
            file.seek(0)
            # A session of its own is a process group, too, which a timeout ends as a whole.
            await loop.subprocess_exec(lambda: self, "/bin/sh", "-c", text, stdin=file, cwd="/",
                                       start_new_session=True)
        loop.call_later(timeout_seconds, self.end, "timed_out")

    def connection_made(self, transport):
        self.transport = transport

    def pipe_data_received(self, fd, data, is_last=False):
        """Keeps a piece of output. Its offset is its place in the output of both streams, in bytes."""
        text = self.decoders[fd].decode(data, is_last)
        if not text:
            return
        stream = {1: "stdout", 2: "stderr"}[fd]
        self.pieces.append({"command_id": self.id, "stream": stream, "data": text, "offset": self.size})
        self.size += len(text.encode())
        # The beginning is sent as it comes. Of what follows only the end is kept, and sent with the result.
        if self.live == len(self.pieces) - 1 < MOST_PIECES and self.size <= HALF_OUTPUT:
            self.live += 1
        while self.live < len(self.pieces) - 1 and (len(self.pieces) - self.live > MOST_PIECES
                                                    or self.size - self.pieces[self.live]["offset"] > HALF_OUTPUT):
            del self.pieces[self.live]
            self.is_cut = True
        self.changed.set()

    def end(self, why):
        if self.transport and self.transport.get_returncode() is None and not self.ending:
            self.ending = why
            self.kill(signal.SIGTERM)
            asyncio.get_running_loop().call_later(GRACE, self.kill, signal.SIGKILL)

    def kill(self, number):
        with contextlib.suppress(ProcessLookupError):
            if not self.result:
                os.killpg(self.transport.get_pid(), number)

    async def stop(self):
        """Ends the command, because the agent ends."""
        self.end("cancelled")
        await asyncio.sleep(0 if self.result else 0.5)
        if self.ending:
            self.kill(signal.SIGKILL)

    def process_exited(self):
        if self.ending:
            self.kill(signal.SIGKILL)
        # What the command left in the background may hold the pipes open for ever. It is not waited for.
        asyncio.get_running_loop().call_later(0.2, self.transport.close)

    def connection_lost(self, _):
        """The process has ended, and its pipes are closed."""
        for fd in self.decoders:
            self.pipe_data_received(fd, b"", is_last=True)
        code = self.transport.get_returncode()
        code = 124 if self.ending == "timed_out" else code if code >= 0 else 128 - code
        status = self.ending or ("failed" if code else "succeeded")
        duration_ms = int(1000 * (time.monotonic() - self.began))
        self.result = {"command_id": self.id, "status": status, "exit_code": code, "duration_ms": duration_ms,
                       "truncated": self.is_cut}
        self.changed.set()
