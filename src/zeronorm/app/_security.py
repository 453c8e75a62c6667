"""Who may see the pages: checks of each request before any page sees it, and headers of each answer.

A page of another site in the same browser can send requests to this computer, and a name of such a site may be
directed to it (DNS rebinding). Therefore each request must name this server as its host, requests that change
something must come from our own pages, and everything needs a cookie that the first link, with its random token, or
the password sets. The cookie is not sent with requests of other sites (SameSite=Strict).
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SAFE_METHODS = ("GET", "HEAD")
LOGIN, OPEN_PATHS = "/login", ("/static/app.css", "/static/report.css")
DELAY_S = 1.0  # after a wrong password, one attempt at a time
MOST_BYTES_OF_LOGIN = 4096
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A report holds its own scripts and styles. The sandbox keeps it from our pages, cookies and the network.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts allow-downloads"
)
HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
WITHOUT_COOKIE = (
    "Open the link that the command printed in the terminal: it holds the key to this page. To get a new one, start "
    "`zeronorm app` again."
)


@dataclass(frozen=True)
class Access:
    """Where the server can be reached, and the secrets that open it.

    Parameters
    ----------
    host : the address that the server listens on.
    port : its port.
    password : the password that opens the pages from other computers; None: only this computer, by the link.
    token : the secret of the first link.
    session : the secret of the cookie.
    """

    host: str
    port: int
    password: str | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies of one host are shared by its ports."""
        return f"zeronorm-{self.port}"

    @property
    def address(self) -> str:
        """The address without a secret."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "localhost") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def link(self) -> str:
        """The first link."""
        return f"{self.address}/?{urlencode({'token': self.token})}"

    def is_our_host(self, given: str) -> bool:
        """Whether the Host of a request is this server; names of other computers are not, whatever they point to."""
        try:
            parts = urlsplit(f"//{given}")
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if parts.netloc != given or port != self.port or "@" in given:
            return False
        if self.host in LOOPBACK:
            return host in LOOPBACK
        return host in (*LOOPBACK, self.host, socket.gethostname().lower()) or _is_address(host)

    def is_ours(self, origin: str, host: str) -> bool:
        """Whether a request comes from our own pages: its origin is the host that it was sent to."""
        return hmac.compare_digest(origin.encode(), f"http://{host}".encode())


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Guard:
    """Checks each request and adds the headers to each answer.

    Parameters
    ----------
    app : the pages.
    access : the secrets and the address.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access
        self._attempts: anyio.Lock | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        answer = self._refusal(request)
        if answer is None and self._has_token(request):
            answer = self._let_in(request)
        elif answer is None and not self._has_cookie(request):
            answer = await self._without_cookie(request)
        await (answer or self.app)(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        """The answer to a request that does not come from our pages."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self.access.is_our_host(hosts[0]):
            return PlainTextResponse("This server does not answer to that name.", 421)
        if request.method not in (*SAFE_METHODS, "POST", "PUT"):
            return PlainTextResponse("This method is not used here.", 405)
        origins = request.headers.getlist("origin")
        is_ours = len(origins) == 1 and self.access.is_ours(origins[0], hosts[0])
        if (origins and not is_ours) or (request.method not in SAFE_METHODS and not is_ours):
            return PlainTextResponse("This request comes from another site.", 403)
        return None

    def _has_token(self, request: Request) -> bool:
        given = request.query_params.get("token", "")
        return request.method in SAFE_METHODS and _is_same(given, self.access.token)

    def _has_cookie(self, request: Request) -> bool:
        if request.url.path in OPEN_PATHS:
            return True
        try:
            found = SimpleCookie(request.headers.get("cookie", "")).get(self.access.cookie)
        except CookieError:
            return False
        return found is not None and _is_same(found.value, self.access.session)

    async def _without_cookie(self, request: Request) -> Response:
        """The answer to a request without the cookie: a new cookie for the right password."""
        if request.url.path == LOGIN and self.access.password is not None:
            return await self._login(request)
        if self.access.password is not None and request.method in SAFE_METHODS:
            return RedirectResponse(LOGIN, 303)
        return PlainTextResponse(WITHOUT_COOKIE, 403)

    async def _login(self, request: Request) -> Response:
        from zeronorm.app._templates import page

        if request.method in SAFE_METHODS:
            return HTMLResponse(page("login.html.j2", wrong=False))
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES_OF_LOGIN:
                return PlainTextResponse("This is too long for a password.", 413)
        given = parse_qs(body.decode("utf-8", "replace")).get("password", [""])[0]
        if self._attempts is None:
            self._attempts = anyio.Lock()
        async with self._attempts:
            if _is_same(given, self.access.password or ""):
                return self._let_in(request)
            await anyio.sleep(DELAY_S)
        return HTMLResponse(page("login.html.j2", wrong=True), 403)

    def _let_in(self, request: Request) -> Response:
        """The page without the secret in its address, with the cookie."""
        path = "/" if request.url.path == LOGIN else request.url.path
        rest = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
        # Two slashes at the beginning would lead to another site.
        target = "/" + path.lstrip("/\\") + (f"?{urlencode(rest)}" if rest else "")
        answer = RedirectResponse(target, 303)
        answer.set_cookie(self.access.cookie, self.access.session, httponly=True, samesite="strict", path="/")
        return answer


def _is_same(given: str, secret: str) -> bool:
    return bool(secret) and hmac.compare_digest(given.encode(), secret.encode())


def _with_headers(send: Send) -> Send:
    """Add the headers that an answer does not set itself."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given: list[Any] = list(message.get("headers", []))
            known = {name.lower() for name, _ in given}
            given += [
                (name.encode(), value.encode())
                for name, value in HEADERS.items()
                if name.encode() not in known
            ]
            message = {**message, "headers": given}
        await send(message)

    return sending
