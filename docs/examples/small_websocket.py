"""The client's side of a WebSocket (RFC 6455), as far as an agent needs it. Messages are JSON in text frames."""
import asyncio, base64, hashlib, json, os, ssl
from urllib.parse import urlsplit

MAX_MESSAGE = 4 << 20  # bytes
SILENCE = 60  # seconds; the service pings every 20 s
ACCEPTED = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3


class Closed(Exception):
    """The service closed the connection, and said why."""

    def __init__(self, code, reason):
        super().__init__(f"closed by the service: {code} {reason}")
        self.code = code


class WebSocket:
    @classmethod
    async def open(cls, url, path):
        self, parts = cls(), urlsplit(url)
        is_secure = parts.scheme in ("https", "wss")
        tls = ssl.create_default_context() if is_secure else None  # verifies the certificate and its name
        port = parts.port or (443 if is_secure else 80)
        self.reader, self.writer = await asyncio.open_connection(parts.hostname, port, ssl=tls)
        nonce = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {nonce}", "", ""]
        self.writer.write("\r\n".join(lines).encode())
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            accepted = base64.b64encode(hashlib.sha1((nonce + ACCEPTED).encode()).digest()).decode()
            if " 101 " not in head.splitlines()[0] or accepted not in head:
                raise ConnectionError(f"the service opened no WebSocket: {head.splitlines()[0]}")
        except BaseException:
            self.writer.close()
            raise
        return self

    async def send(self, kind, data):
        self.write(0x1, json.dumps({"type": kind, "data": data}, ensure_ascii=False).encode())
        await self.writer.drain()

    def write(self, opcode, payload):
        """Writes one frame. A client must mask its frames."""
        size, mask = len(payload), os.urandom(4)
        length = bytes([0x80 | size]) if size < 126 else (
            b"\xfe" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xff" + size.to_bytes(8, "big"))
        masks = (mask * (size // 4 + 1))[:size]
        masked = int.from_bytes(payload, "big") ^ int.from_bytes(masks, "big")
        self.writer.write(bytes([0x80 | opcode]) + length + mask + masked.to_bytes(size, "big"))

    async def receive(self):
        """Returns type and data of the next message. Answers pings and joins fragments on the way."""
        message = b""
        while True:
            first, size = await self.read(2)
            if size > 125:
                size = int.from_bytes(await self.read(2 if size == 126 else 8), "big")
            if len(message) + size > MAX_MESSAGE:
                raise ConnectionError("the service sent a message that is too long")
            opcode, payload = first & 0x0F, await self.read(size)
            if opcode == 0x8:
                raise Closed(int.from_bytes(payload[:2], "big"), payload[2:].decode("utf-8", "replace"))
            if opcode == 0x9:
                self.write(0xA, payload)
            elif opcode < 0x3:
                message += payload
                if first & 0x80:
                    envelope = json.loads(message)
                    return envelope["type"], envelope["data"]

    async def read(self, size):
        """A peer that has gone may never say so."""
        return await asyncio.wait_for(self.reader.readexactly(size), SILENCE)

    def close(self):
        self.write(0x8, (1000).to_bytes(2, "big"))
        self.writer.close()
