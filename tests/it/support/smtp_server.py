"""An SMTP server whose behaviour the test sets. It prints what happens, a JSON object a line: first the port, then
each connection, each attempt to authenticate and each mail.

`slow` says how many seconds it takes at each stage: `greeting`, `rcpt` (by address), `data` (the go-ahead), `dot`.
`gate` names a file that it waits for before it answers a final dot."""

import asyncio
import json
import os
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

told = json.loads(sys.argv[1])
slow = told.get("slow", {})


def say(**happened):
    print(json.dumps(happened), flush=True)


class Handler:
    async def handle_MAIL(self, server, session, envelope, address, options):
        envelope.mail_from = address
        return told.get("mail", "250 OK")

    async def handle_RCPT(self, server, session, envelope, address, options):
        await asyncio.sleep(slow.get("rcpt", {}).get(address, 0))
        answer = told.get("rcpt", {}).get(address, "250 OK")
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server, session, envelope):
        say(
            mail=envelope.content.decode("ascii"),
            sender=envelope.mail_from,
            to=envelope.rcpt_tos,
            tls=session.ssl is not None or told["tls"] == "smtps",
            authenticated=session.authenticated,
        )
        await asyncio.sleep(slow.get("dot", 0))
        while "gate" in told and not os.path.exists(told["gate"]):
            await asyncio.sleep(0.01)
        if len(envelope.rcpt_tos) > told.get("most", 100):
            return "554 for one of them I will not"
        return told.get("data", "250 OK")


class Server(SMTP):
    async def _handle_client(self):
        say(connected=True)
        await asyncio.sleep(slow.get("greeting", 0))
        await super()._handle_client()

    async def smtp_DATA(self, arg):
        await asyncio.sleep(slow.get("data", 0))
        await super().smtp_DATA(arg)


def authenticate(server, session, envelope, mechanism, credentials):
    user, password = credentials.login.decode(), credentials.password.decode()
    say(user=user, password=password)
    success = told.get("user") == user and told.get("password") == password
    return AuthResult(success=success, handled=False)


async def serve():
    context = None
    if told["tls"] != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(told["certificate"], told["key"])
    starttls = told["tls"] == "starttls"

    def session():
        return Server(
            Handler(),
            hostname="mail.test",
            tls_context=context if starttls else None,
            require_starttls=starttls,
            authenticator=authenticate,
            auth_required="user" in told,
            auth_require_tls=starttls,
            loop=asyncio.get_running_loop(),
        )

    loop = asyncio.get_running_loop()
    implicit = context if told["tls"] == "smtps" else None
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=implicit)
    say(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(serve())
