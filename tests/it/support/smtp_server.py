"""An SMTP server that takes mails as it is told to. It prints what happens, a JSON object a line: first the port, then
each attempt to authenticate and each mail."""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

told = json.loads(sys.argv[1])


def say(**happened):
    print(json.dumps(happened), flush=True)


class Handler:
    async def handle_MAIL(self, server, session, envelope, address, options):
        envelope.mail_from = address
        return told.get("mail", "250 OK")

    async def handle_RCPT(self, server, session, envelope, address, options):
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
        return told.get("data", "250 OK")


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
        return SMTP(
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
