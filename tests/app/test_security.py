"""Attacks on the page: other sites, other names of this computer, paths, markup, large and hostile files."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from app.conftest import ADDRESS, HOSTILE, OURS, PORT, QUICK, client_of, table_text
from zeronorm.app._context import Context
from zeronorm.app._security import PAGE_POLICY, Access
from zeronorm.app._server import serve
from zeronorm.app._tables import Tables, safe_name

PLACES = (
    "/",
    "/tables/patients.csv",
    "/runs/x",
    "/runs/x/report",
    "/compare?first=a&second=b",
    "/static/page.js",
)


@pytest.mark.parametrize("path", PLACES)
def test_nothing_is_shown_without_the_cookie(context, table, path):
    answer = client_of(context, with_cookie=False).get(path)
    assert answer.status_code == 403
    assert "Open the link" in answer.text
    assert answer.headers["content-security-policy"] == PAGE_POLICY


def test_the_first_link_sets_a_cookie_that_other_sites_cannot_use(context):
    client = client_of(context, with_cookie=False)
    answer = client.get(f"/?token={context.access.token}", follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"  # without the token
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert context.access.token not in cookie
    assert client.get("/").status_code == 200
    again = client.get(f"/?token={context.access.token}", follow_redirects=False)
    assert (
        again.headers["location"] == "/"
    )  # also with the cookie, so that no page has the token in its address


@pytest.mark.parametrize("token", ["", "x", "Ω"])
def test_a_wrong_token_opens_nothing(context, token):
    assert client_of(context, with_cookie=False).get("/", params={"token": token}).status_code == 403


def test_the_token_leads_to_no_other_site(context):
    client = client_of(context, with_cookie=False)
    answer = client.get(f"//evil.example/?token={context.access.token}", follow_redirects=False)
    assert answer.headers.get("location", "/").startswith("/")
    assert not answer.headers.get("location", "/").startswith("//")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"http://localhost:{PORT}", f"https://127.0.0.1:{PORT}", None]
)
@pytest.mark.parametrize("path", ["/runs", "/plan", "/runs/x/stop", "/runs/x/continue", "/runs/x/apply"])
def test_a_post_from_another_site_is_refused(client, table, origin, path):
    """With the cookie, as a browser would send it if SameSite did not hold."""
    headers = {} if origin is None else {"origin": origin}
    given = {"kind": "select", "table": table, "options": QUICK}
    assert client.post(path, json=given, headers=headers).status_code == 403


def test_a_file_from_another_site_is_refused(client, context):
    assert (
        client.put(
            "/tables?name=a.csv", content=b"a,b\n", headers={"origin": "http://evil.example"}
        ).status_code
        == 403
    )
    assert context.tables.names() == []


def test_a_form_of_another_site_cannot_send_what_a_script_sends(client, table):
    """A form needs no permission to send text, but cannot send JSON."""
    answer = client.post(
        "/runs", content=b'{"kind":"select"}', headers={**OURS, "content-type": "text/plain"}
    )
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1.evil.example:{PORT}",
        "",
        f"a@127.0.0.1:{PORT}",
    ],
)
def test_a_name_that_was_directed_to_this_computer_gets_no_answer(client, host):
    """DNS rebinding: the page of another site may have its own name point here."""
    assert client.get("/", headers={"host": host}).status_code == 421


def test_loopback_names_are_ours(client):
    assert client.get("/", headers={"host": f"localhost:{PORT}"}).status_code == 200


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.request(method, "/", headers=OURS).status_code == 405


# -- Paths --

SECRETS = [
    "../secret.txt",
    "..%2fsecret.txt",
    "%2e%2e%2fsecret.txt",
    "..\\secret.txt",
    "%252e%252e%252fsecret.txt",
    "....//secret.txt",
]


@pytest.mark.parametrize(
    "path", [*SECRETS, "/etc/passwd", "%2fetc%2fpasswd", "file%3a%2f%2f%2fetc%2fpasswd", "secret.txt%00.csv"]
)
def test_no_path_leads_out_of_the_working_folder(finished, path):
    context, run = finished
    (context.folder.parent / "secret.txt").write_text("SECRET")
    (context.folder / "secret.txt").write_text("SECRET")
    client = client_of(context)
    for start in ("/tables/", "/runs/", f"/runs/{run.name}/files/", "/static/", f"/runs/{run.name}/"):
        answer = client.get(start + path)
        assert answer.status_code in (400, 404, 405), start
        assert "SECRET" not in answer.text
        assert "root:" not in answer.text


@pytest.mark.parametrize("path", ["../../secret.csv", "/etc/passwd", "known:../x", "known:colon/../x", "."])
def test_no_field_leads_out_of_the_working_folder(client, context, table, path):
    (context.folder.parent / "secret.csv").write_text(table_text())
    for given in (
        {"kind": "select", "table": path, "options": QUICK},
        {"kind": "select", "table": table, "options": {**QUICK, "samples": path}},
        {"kind": "select", "table": table, "options": {**QUICK, "annotation": path}},
    ):
        for address in ("/plan", "/runs"):
            assert client.post(address, json=given, headers=OURS).status_code == 404
    assert context.runs.all() == []


@pytest.mark.parametrize(
    "name", ["out", "write_table", "dask", "device", "force", "params", "verbose", "data", "nonsense"]
)
def test_options_that_name_files_or_addresses_are_not_taken(client, table, name):
    given = {"kind": "select", "table": table, "options": {**QUICK, name: "/tmp/x"}}
    answer = client.post("/runs", json=given, headers=OURS)
    assert answer.status_code == 400
    assert name in answer.json()["error"]


def test_links_out_of_the_working_folder_are_not_followed(client, context, table, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text(table_text())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "result.json").write_text("{}")
    (context.tables.folder / "link.csv").symlink_to(secret)
    context.runs.folder.mkdir()
    (context.runs.folder / "link").symlink_to(tmp_path / "elsewhere")
    (context.runs.folder / "run").mkdir()
    (context.runs.folder / "run" / "report.html").symlink_to(secret)
    assert client.get("/tables/link.csv").status_code == 404
    assert client.get("/runs/link").status_code == 404
    assert client.get("/runs/run/report").status_code == 404
    assert client.get("/runs/run/files/report.html").status_code == 404


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../a.csv", "a.csv"),
        ("C:\\data\\a.csv", "a.csv"),
        (".hidden", "hidden"),
        ("", "table"),
        ("..", "table"),
        ("a\x00\nb.csv", "a__b.csv"),
        ("<b>.csv", "_b_.csv"),
        ("x" * 500 + ".csv", "x" * 117 + ".csv"),
        ("Gewebe – Übersicht.xlsx", "Gewebe – Übersicht.xlsx"),
    ],
)
def test_names_of_files_are_made_safe(given, name):
    assert safe_name(given) == name


# -- Large and hostile files --


def test_a_file_above_the_limit_is_not_kept(client, context):
    """With its size announced, and sent piece by piece without it."""
    piece = b"x" * 65_536
    for content in (piece * 17, itertools.repeat(piece, 100)):
        answer = client.put("/tables?name=large.csv", content=content, headers=OURS)
        assert answer.status_code == 413
        assert "--max-upload" in answer.json()["error"]
    assert list(context.tables.folder.glob("*")) == []
    assert list(context.tables.folder.glob(".*")) == []


def test_100_megabytes_go_to_the_disk_piece_by_piece(tmp_path):
    tables = Tables(tmp_path, most_bytes=100 << 20)

    async def pieces():
        for _ in range(100):
            yield bytes(1 << 20)

    tracemalloc.start()
    name = anyio.run(tables.receive, "large.csv", pieces(), None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tables.path(name).stat().st_size == 100 << 20
    assert peak < 5 << 20


def test_a_file_that_grows_without_end_is_refused_with_a_message(client):
    bomb = gzip.compress(b"0" * (70 << 20))
    assert (
        client.put("/tables?name=bomb.csv.gz", content=gzip.compress(bomb), headers=OURS).status_code == 201
    )
    answer = client.get("/tables/bomb.csv.gz")
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text


def test_a_request_with_too_much_text_is_refused(client, table):
    given = {"kind": "select", "table": table, "options": {**QUICK, "ignore": "x" * (2 << 20)}}
    assert client.post("/plan", json=given, headers=OURS).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        b"\xff",
        b'{"kind": 3}',
        b'{"kind": "select", "table": "patients.csv", "options": {"target": 3}}',
        b'{"kind": "select", "table": "patients.csv", "options": {"cv": "many"}}',
    ],
)
@pytest.mark.parametrize("path", ["/plan", "/runs"])
def test_odd_requests_have_an_answer(client, table, body, path):
    answer = client.post(path, content=body, headers={**OURS, "content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]


# -- Markup in names --


def test_markup_in_names_is_shown_as_text(client, context):
    name = "<img src=x onerror=alert(1)>.csv"
    (context.tables.folder).mkdir(parents=True)
    (context.tables.folder / name).write_text(table_text(), encoding="utf-8")
    client.get("/")
    for path in (
        "/",
        "/tables/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E.csv",
        "/tables/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E.csv/columns?q=script",
    ):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert HOSTILE not in answer.text
        assert "<img" not in answer.text
    assert "&lt;script&gt;" in answer.text
    missing = client.get("/tables/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert missing.status_code == 404
    assert "<script>alert" not in missing.text


def test_no_page_holds_a_script_or_a_style_of_its_own(finished):
    context, run = finished
    client = client_of(context)
    for path in (
        "/",
        "/tables/patients.csv",
        f"/runs/{run.name}",
        f"/compare?first={run.name}&second={run.name}",
    ):
        text = client.get(path).text
        assert text.count("<script") == text.count('<script src="/static/')
        assert " style=" not in text
        assert " on" not in text.partition("<body>")[0]
    policy = client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_the_report_is_shown_in_a_sandbox_without_network(finished):
    context, run = finished
    policy = client_of(context).get(f"/runs/{run.name}/report").headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy
    assert "default-src 'none'" in policy


# -- Other computers --


def test_other_computers_need_a_password():
    with pytest.raises(ValueError, match="password"):
        serve(host="0.0.0.0", with_browser=False)


@pytest.mark.parametrize("folder", ["nothing", "."])
def test_a_folder_without_a_run_is_not_opened(tmp_path, folder):
    with pytest.raises(ValueError, match="folder of a run"):
        serve(tmp_path / folder, with_browser=False)


def test_the_password_opens_the_pages_and_a_wrong_one_waits(tmp_path, monkeypatch):
    from zeronorm.app import _security

    monkeypatch.setattr(_security, "DELAY_S", 0.01)
    context = Context(tmp_path, Access("0.0.0.0", PORT, password="Öl & Gas"), most_bytes=1)
    client = client_of(context, with_cookie=False)
    assert "Password" in client.get("/").text
    wrong = client.post("/login", data={"password": "Gas"}, headers=OURS)
    assert wrong.status_code == 403
    assert "not the password" in wrong.text
    assert client.post("/login", data={"password": "Öl & Gas"}).status_code == 403  # of another site
    assert client.post("/login", content=b"x" * 5000, headers=OURS).status_code == 413
    right = client.post("/login", data={"password": "Öl & Gas"}, headers=OURS, follow_redirects=False)
    assert (right.status_code, right.headers["location"]) == (303, "/")
    assert client.get("/").status_code == 200


def test_with_a_password_addresses_are_ours_and_names_are_not():
    access = Access("0.0.0.0", PORT, password="x")
    assert access.is_our_host(f"192.168.1.5:{PORT}")
    assert access.is_our_host(f"[::1]:{PORT}")
    assert not access.is_our_host(f"evil.example:{PORT}")


def test_twenty_clients_at_once(context, table):
    clients = [client_of(context) for _ in range(20)]

    def visit(client):
        given = {"kind": "select", "table": table, "options": QUICK}
        return [
            client.get("/").status_code,
            client.get(f"/tables/{table}").status_code,
            client.post("/plan", json=given, headers=OURS).status_code,
            client.put("/tables?name=same.csv", content=table_text().encode(), headers=OURS).status_code,
        ]

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(visit, clients)) == [[200, 200, 200, 201]] * 20
    assert len(context.tables.names()) == 21  # none was overwritten


def test_the_link_is_the_only_text_with_the_token():
    access = Access("127.0.0.1", PORT)
    assert access.link.startswith(f"{ADDRESS}/?token=")
    assert access.token not in access.address
    assert access.token != access.session
