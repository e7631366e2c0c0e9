"""Users of the console: each role on each route, passwords, failures, proxies, and whose name is recorded."""

import json
import re
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner
from msgspec.structs import replace

from consoles import Answer, Visitor, request, study_between, study_file
from syndic.cli.main import cli
from syndic.console import access, serve, users
from syndic.console.access import Proxy
from syndic.console.endpoints import ENDPOINTS
from syndic.console.pages import PAGES, Asked, _password
from syndic.console.users import ROLES, UserRole, find, put, remove, with_password, with_token
from syndic.errors import InputError, RefusedError
from syndic.federation.coordinator import Coordinator
from syndic.kernel import member
from syndic.kernel.agreement import check_agreement
from syndic.privacy.audit import AuditLog
from syndic.study import PartyFolder, Study
from syndic.study.study_folder import StudyFolder
from syndic.version import __version__

PASSWORD = "correct horse battery"
PROXY = Proxy(address="10.0.0.5", header="X-Forwarded-User", url="https://console.example.org")
# what a reader may not do: the list is written by hand, so that a route that is added must be thought about
OWNERS = {
    ("GET", "/studies/{run}/fit"),
    ("GET", "/draft"),
    ("GET", "/draft/choices"),
    ("PUT", "/draft"),
    *(("POST", path) for path in ("/studies", "/studies/{run}", "/draft", "/draft/study", "/releases")),
    *(("POST", f"/studies/{{run}}/{what}") for what in ("agreement", "refusal", "withdrawal", "run")),
}


@pytest.fixture
def place(tmp_path: Path) -> tuple[Study, PartyFolder]:
    study, homes = study_between(tmp_path)
    return study, homes["north"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A party's folder and a coordinator's, each with an administrator who stays."""
    _, homes = study_between(tmp_path_factory.mktemp("roles"))
    coordinator = Coordinator.create(tmp_path_factory.mktemp("f") / "c", name="f", host="localhost", port=8002)
    found = {"party": homes["north"].folder, "coordinator": coordinator.folder}
    for folder in found.values():
        put(folder, with_token("root", "administrator")[0])
    return found


def needed(method: str, path: str, *, page: bool) -> UserRole:
    if path == "/users":
        return "administrator"
    # forms are an owner's, except those of verification and of one's own account
    form = page and method == "POST" and path not in {"/ledger", "/account"}
    return "owner" if form or (method, path) in OWNERS else "reader"


def sign_in(visitor: Visitor, name: str, password: str, **headers: str) -> Answer:
    return visitor.form("/login", {"name": name, "password": password}, cookie="", **headers)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("console", ["party", "coordinator"])
def test_every_route_asks_for_its_role(folders: dict[str, Path], console: Any, role: UserRole) -> None:
    folder = folders[console]
    visitor = Visitor(folder, name=f"some-{role}", role=role)
    routes = [(True, method, page.path) for page in PAGES[console] for method in ("GET", "POST")]
    routes += [(False, one.method, one.path) for one in ENDPOINTS[console]]
    everyone = {"/", "/login", "/logout", "/assets/{file}", "/api/v1/openapi.json", "/releases/{name}/report"}
    known = {path if page else f"/api/v1{path}" for page, _, path in routes}
    assert {route.path for route in visitor.app._inner.routes} == known | everyone  # type: ignore[attr-defined]
    for page, method, path in routes:
        due = ROLES.index(role) < ROLES.index(needed(method, path, page=page))
        address = re.sub(r"{\w+}", "0" * 16, path)
        for bearer in (False,) if page else (False, True):
            answer = asked(visitor, method, address, page=page, bearer=bearer)
            refused = answer.status == 403 and "needs the role" in answer.text
            assert refused == due, (method, path, answer.text[:300])
        stranger = visitor.send(method, address if page else f"/api/v1{address}", cookie="")
        assert (stranger.status, stranger.headers.get("location")) == ((303, "/login") if page else (401, None))


def asked(visitor: Visitor, method: str, path: str, *, page: bool, bearer: bool) -> Answer:
    if page:
        return visitor.form(path, {"token": visitor.token}) if method == "POST" else visitor.send("GET", path)
    who = {"authorization": f"Bearer {visitor.secret}", "cookie": ""} if bearer else {"x_syndic_token": visitor.token}
    return visitor.send(method, f"/api/v1{path}", body=b"{}", content_type="application/json", **who)


def test_what_a_reader_sees_has_no_forms_of_an_owner(place: tuple[Study, PartyFolder]) -> None:
    study, home = place
    Visitor(home.folder).post("/studies", action="receive", text=study_file(study))
    reader = Visitor(home.folder, name="rita", role="reader")
    for page in ("/studies", f"/studies/{study.digest}", "/releases"):
        text = reader.get(page)
        forms = re.findall('<form[^>]*method="post"[^>]*action="([^"]*)"', text)
        assert set(forms) <= {"/logout"}, page
        assert 'href="/users"' not in text
        assert 'href="/draft"' not in text


def test_the_agreement_and_the_log_name_the_person(place: tuple[Study, PartyFolder]) -> None:
    study, home = place
    Visitor(home.folder)
    olga = Visitor(home.folder, name="Olga", role="owner")
    olga.post("/studies", action="receive", text=study_file(study))
    olga.post(f"/studies/{study.digest}", action="agree", typed=study.digest[:8], days="1", read="yes")
    stored = StudyFolder.of(home.folder, study.digest)
    signed = stored.agreement("north")
    assert signed is not None
    assert signed.person == "user Olga"
    # signed: another name does not pass
    known = {"identity": member(study, "north").identity or "", "run": study.digest, "party": "north"}
    check_agreement(signed, **known, syndic=__version__)
    with pytest.raises(RefusedError, match="does not carry the signature"):
        check_agreement(replace(signed, person="user Otto"), **known, syndic=__version__)
    with home.open_ledger() as ledger:
        assert "by user Olga" in next(one.why for one in ledger.entries() if one.kind == "agree")
    assert "agreed to by user Olga" in olga.get(f"/studies/{study.digest}")
    lines = [(one.who, one.what) for one in home.audit.records()]
    for what in ("sign in", "receive", "agree"):
        assert ("user Olga", what) in lines
    reader = Visitor(home.folder, name="rita", role="reader")
    assert reader.form(f"/studies/{study.digest}", {"token": reader.token, "action": "withdraw"}).status == 403
    last = home.audit.records()[-1]
    assert (last.who, last.allowed) == ("user rita", False)


def test_a_password_is_slow_salted_and_private(place: tuple[Study, PartyFolder]) -> None:
    folder = place[1].folder
    for name in ("a", "b"):
        put(folder, with_password(name, "administrator", PASSWORD))
    one, two = users.users(folder)
    assert one.password.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert one.password != two.password
    assert stat.S_IMODE((folder / "users.json").stat().st_mode) == 0o600
    assert PASSWORD not in (folder / "users.json").read_text()
    for bad in ("", "short", "x" * 14, "x" * 1001):
        with pytest.raises(InputError, match="15 to 1000"):
            with_password("a", "reader", bad)


def test_signing_in_with_a_password(place: tuple[Study, PartyFolder]) -> None:
    visitor = Visitor(place[1].folder)
    put(visitor.folder, with_password("paul", "owner", PASSWORD))
    for name, password in (("paul", ""), ("paul", PASSWORD[:-1]), ("paul", PASSWORD + "x"), ("maria", PASSWORD)):
        answer = sign_in(visitor, name, password)
        assert (answer.status, answer.cookies) == (401, [])
    assert sign_in(visitor, "PAUL", PASSWORD).status == 303
    # the digest of a password is not a token, and that of a token is not one either
    for one in users.users(visitor.folder):
        for offered in filter(None, (one.password, one.token)):
            assert visitor.form("/login", {"secret": offered}, cookie="").status == 401


def test_an_unknown_name_costs_the_same_work(place: tuple[Study, PartyFolder], monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = Visitor(place[1].folder)
    put(visitor.folder, with_password("paul", "owner", PASSWORD))
    tried: list[str] = []
    real = users._is_password

    def counted(stored: str, offered: str) -> bool:
        tried.append(stored)
        return real(stored, offered)

    monkeypatch.setattr(users, "_is_password", counted)
    answers = [sign_in(visitor, name, "wrong password here") for name in ("paul", "nobody", "maria", "")]
    assert len(tried) == 4
    assert {re.sub(r"\$[^$]*\$[^$]*$", "", one) for one in tried} == {"$argon2id$v=19$m=19456,t=2,p=1"}
    assert len({(one.status, one.body) for one in answers}) == 1


def test_a_refusal_is_written_after_the_answer(
    place: tuple[Study, PartyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A known name's first failure is a new line and an unknown name's is not: the time would tell them apart."""
    visitor, order = Visitor(place[1].folder), []
    app = visitor.app

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            order.append(message["type"])
            await send(message)

        await app(scope, receive, sending)

    visitor.app = watched
    monkeypatch.setattr(AuditLog, "refuse", lambda *_given, **_named: order.append("log"))
    for name in ("maria", "nobody"):
        order.clear()
        assert sign_in(visitor, name, "wrong password here").status == 401
        assert order == ["http.response.start", "http.response.body", "log"]


def test_failures_make_a_name_wait_known_or_not(
    place: tuple[Study, PartyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("syndic.console.access.time.monotonic", lambda: now[0])
    monkeypatch.setattr(users, "_is_password", lambda stored, offered: stored == offered)
    visitor = Visitor(place[1].folder)
    put(visitor.folder, users.User(name="paul", role="owner", password="right"))
    for name in ("paul", "nobody"):
        assert [sign_in(visitor, name, "wrong").status for _ in range(6)] == [401] * 5 + [403]
    # also with the right password, and under another spelling
    assert sign_in(visitor, "PAUL", "right").status == 403
    now[0] += 61
    assert sign_in(visitor, "paul", "wrong").status == 401
    now[0] += 61
    assert sign_in(visitor, "paul", "right").status == 403
    now[0] += 60
    assert sign_in(visitor, "paul", "right").status == 303
    # then it counts from the start
    assert [sign_in(visitor, "paul", "wrong").status for _ in range(5)] == [401] * 5
    log = AuditLog(visitor.folder).records()
    refused = [(one.who, one.what, one.why) for one in log if not one.allowed]
    assert ("user paul", "sign in", "too many failed sign-ins with this name") in refused
    # what was typed as an unknown name may be a password
    assert "nobody" not in str(log)


def test_many_sign_ins_at_once_are_refused_not_queued(
    place: tuple[Study, PartyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syndic.console.access._BUSY_SECONDS", 0.01)
    busy = access.sign_in_of(place[1].folder)
    with busy._lock, pytest.raises(RefusedError, match="try again"):
        busy.user("paul", PASSWORD)


def test_a_session_that_an_attacker_chose_is_never_used(place: tuple[Study, PartyFolder]) -> None:
    visitor = Visitor(place[1].folder)
    user, secret = with_token("mallory", "reader")
    put(visitor.folder, user)
    mallory = visitor.form("/login", {"secret": secret}, cookie="").cookies[0].partition(";")[0]
    assert visitor.send("GET", "/studies", cookie=mallory).status == 200
    for planted in (mallory, f"{mallory.partition('=')[0]}={'0' * 64}"):
        answer = visitor.form("/login", {"secret": visitor.secret}, cookie=planted)
        given = answer.cookies[0].partition(";")[0]
        assert given != planted
        assert visitor.send("GET", "/users", cookie=given).status == 200
        # the planted one has no session, in particular not the administrator's
        assert visitor.send("GET", "/users", cookie=planted).status == 303


@pytest.mark.parametrize("change", ["role", "password", "removed"])
def test_a_change_of_a_user_ends_its_sessions_and_no_others(place: tuple[Study, PartyFolder], change: str) -> None:
    folder = place[1].folder
    maria, otto = Visitor(folder), Visitor(folder, name="otto", role="owner")
    assert otto.send("GET", "/draft").status == 200
    user = find(folder, "otto")
    assert user is not None
    if change == "role":
        put(folder, users.User(name="otto", role="reader", token=user.token))
        assert otto.ask("GET", "/draft", 403)
    elif change == "password":
        otto.post("/account", 409, action="set", new=PASSWORD, again=PASSWORD)
        otto.post("/account", 409, action="set", present=maria.secret, new=PASSWORD, again=PASSWORD)
        otto.post("/account", action="set", present=otto.secret, new=PASSWORD, again=PASSWORD)
        otto.ask("GET", "/studies", 401)
        assert sign_in(otto, "otto", PASSWORD).status == 303
    else:
        maria.post("/users", action="remove", name="otto")
    assert otto.send("GET", "/draft").headers["location"] == "/login"
    assert maria.send("GET", "/users").status == 200


def test_ones_own_password_needs_the_present_one(place: tuple[Study, PartyFolder]) -> None:
    visitor = Visitor(place[1].folder)
    put(visitor.folder, with_password("maria", "administrator", PASSWORD))
    visitor.cookie = sign_in(visitor, "maria", PASSWORD).cookies[0].partition(";")[0]
    visitor.token = re.findall('name="token" value="(.*?)"', visitor.get("/account"))[0]
    new = "another good sentence"
    assert "is wrong" in visitor.post("/account", 409, action="set", present="no", new=new, again=new)
    assert "differ" in visitor.post("/account", 400, action="set", present=PASSWORD, new=new, again=PASSWORD)
    visitor.post("/account", action="set", present=PASSWORD, new=new, again=new)
    assert sign_in(visitor, "maria", PASSWORD).status == 401
    assert sign_in(visitor, "maria", new).status == 303


def test_an_administrator_adds_and_removes_and_one_always_stays(place: tuple[Study, PartyFolder]) -> None:
    visitor = Visitor(place[1].folder)
    text = visitor.post("/users", 200, action="add", name="otto", role="owner")
    token = re.findall('id="token">([0-9a-f]{64})<', text)[0]
    answer = visitor.form("/login", {"secret": token}, cookie="")
    assert answer.status == 303
    for name, role in (("../x", "owner"), ("", "owner"), ("a b", "owner"), ("eva", "root"), ("x" * 65, "owner")):
        visitor.post("/users", 400, action="add", name=name, role=role)
    assert "needs an administrator" in visitor.post("/users", 409, action="remove", name="maria")
    assert "needs an administrator" in visitor.post("/users", 409, action="add", name="MARIA", role="owner")
    visitor.post("/users", action="remove", name="otto")
    assert visitor.form("/login", {"secret": token}, cookie="").status == 401
    done = [(one.who, one.what) for one in AuditLog(visitor.folder).records() if one.allowed]
    assert ("user maria", "add user otto as owner") in done
    assert ("user maria", "remove user otto") in done


# a reverse proxy


def from_address(visitor: Visitor, client: str, path: str, *named: str, cookie: str = "") -> Answer:
    """Send a request through the application as if it came from this address."""
    headers: list[tuple[str, str]] = [("host", "console.example.org"), ("cookie", cookie)]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        more = [(b"x-forwarded-user", one.encode()) for one in named]
        await visitor.app({**scope, "client": (client, 1), "headers": [*scope["headers"], *more]}, receive, send)

    return request(app, "GET", path, dict(headers))


def test_only_the_proxy_names_a_user(place: tuple[Study, PartyFolder]) -> None:
    visitor = Visitor(place[1].folder, signed_in=False, proxy=PROXY)
    put(visitor.folder, users.User(name="otto@example.org", role="owner"))
    answer = from_address(visitor, "10.0.0.5", "/login", "Otto@example.org")
    assert (answer.status, answer.headers["refresh"]) == (200, "0; url=/studies")
    assert "secure" in answer.cookies[0].lower()
    cookie = answer.cookies[0].partition(";")[0]
    assert from_address(visitor, "10.0.0.5", "/draft", "otto@example.org", cookie=cookie).status == 200
    # anybody else's header, two names, no name, and names that nobody has
    for client in ("10.0.0.6", "127.0.0.1", "::1", "10.0.0.55", "unknown"):
        assert from_address(visitor, client, "/login", "maria").cookies == []
    assert from_address(visitor, "::ffff:10.0.0.5", "/login", "maria").cookies
    for named in (("maria", "maria"), ("",), ("nobody",), ()):
        assert from_address(visitor, "10.0.0.5", "/login", *named).cookies == []
    assert from_address(visitor, "10.0.0.5", "/login", "nobody").status == 403
    # the proxy now names somebody else: the session of the one before ends
    assert from_address(visitor, "10.0.0.5", "/draft", "maria", cookie=cookie).status == 303
    assert from_address(visitor, "10.0.0.5", "/draft", "otto@example.org", cookie=cookie).status == 303
    assert ("user otto@example.org", "by the proxy") in [
        (one.who, one.why) for one in AuditLog(visitor.folder).records()
    ]
    # a user without password and token signs in through the proxy only, and cannot make a password
    with pytest.raises(RefusedError, match="through the reverse proxy"):
        _password(visitor.folder, Asked(path={}, user="otto@example.org", form={"new": PASSWORD, "again": PASSWORD}))
    assert sign_in(visitor, "otto@example.org", "").status == 401


def test_behind_a_proxy_only_its_origin_and_host_count(place: tuple[Study, PartyFolder]) -> None:
    visitor = Visitor(place[1].folder, proxy=PROXY)
    fields = {"secret": visitor.secret}
    assert visitor.form("/login", fields, host="console.example.org", origin=PROXY.url).status == 303
    assert visitor.form("/login", fields, host="console.example.org", origin="http://console.example.org").status == 403
    assert visitor.form("/login", fields, host="evil.example.org", origin=PROXY.url).status == 403


@pytest.mark.parametrize(
    "given",
    [
        {"address": ""},
        {"address": "proxy"},
        {"address": "10.0.0.0/8"},
        {"header": "x user"},
        {"header": ""},
        {"url": ""},
        {"url": "https://a/b"},
    ],
    ids=str,
)
def test_a_proxy_is_declared_whole(given: dict[str, str]) -> None:
    with pytest.raises(InputError, match="--"):
        Proxy(**{"address": "10.0.0.5", "header": "Remote-User", "url": "https://a", **given})


@pytest.fixture
def served(place: tuple[Study, PartyFolder], monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A console that listens, as `syndic console --proxy` starts it; the declared proxy is another machine."""
    folder = place[1].folder
    put(folder, users.User(name="maria", role="administrator"))
    servers: list[uvicorn.Server] = []
    real = uvicorn.Server.__init__

    def kept(self: uvicorn.Server, config: uvicorn.Config) -> None:
        real(self, config)
        servers.append(self)

    monkeypatch.setattr(uvicorn.Server, "__init__", kept)
    monkeypatch.setattr(uvicorn.Server, "capture_signals", lambda _self: threading.Lock())
    listening = serve.open_socket("127.0.0.1", 0)
    port = int(listening.getsockname()[1])
    given = {"host": "127.0.0.1", "port": port, "proxy": PROXY}
    thread = threading.Thread(target=serve.serve, args=(folder, listening), kwargs=given)
    thread.start()
    # It configures logging, which closes a handler of a library that has pytest's stream if that is not sys.stderr just
    # then, as between fixture and test: all later tests would fail.
    until = time.monotonic() + 30
    while not (servers and servers[0].started) and time.monotonic() < until:
        time.sleep(0.01)
    yield port
    servers[0].should_exit = True
    thread.join(30)


def test_a_local_program_cannot_pretend_to_be_the_proxy(served: int) -> None:
    """A web server that believes in X-Forwarded-For would take this connection for the proxy's."""
    lines = [
        "GET /login HTTP/1.1",
        "Host: console.example.org",
        "X-Forwarded-For: 10.0.0.5",
        "Forwarded: for=10.0.0.5",
        "X-Forwarded-User: maria",
        "Connection: close",
    ]
    with socket.create_connection(("127.0.0.1", served)) as peer:
        peer.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b"".join(iter(lambda: peer.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.1 200")
    assert "set-cookie" not in answer.lower()


# the command line


def test_verbs_add_list_and_remove(place: tuple[Study, PartyFolder], tmp_path: Path) -> None:
    folder = str(place[1].folder)

    def syndic(*words: str, typed: str = "") -> Any:
        return CliRunner().invoke(cli, ["user", *words, "--home", folder], input=typed)

    first = syndic("add", "olga", "--role", "owner", "--sign-in", "proxy")
    assert isinstance(first.exception, RefusedError)
    assert syndic("add", "maria", "--role", "administrator", typed=f"{PASSWORD}\n{PASSWORD}\n").exit_code == 0
    assert isinstance(syndic("add", "x", "--role", "reader", typed="short\nshort\n").exception, InputError)
    token = syndic("add", "backup", "--role", "reader", "--sign-in", "token").output.split()[-1]
    assert users.by_token(place[1].folder, token) == find(place[1].folder, "backup")
    assert users.by_password(place[1].folder, "maria", PASSWORD) is not None
    listed = json.loads(syndic("list", "--json").output)
    assert [one["name"] for one in listed] == ["backup", "maria"]
    assert "argon2" not in syndic("list").output
    assert syndic("remove", "backup").exit_code == 0
    with pytest.raises(InputError, match="no such user"):
        remove(place[1].folder, "backup")
    assert isinstance(
        CliRunner().invoke(cli, ["user", "add", "a", "--role", "reader", "--home", str(tmp_path)]).exception, InputError
    )


def test_two_processes_add_users_at_the_same_time(
    place: tuple[Study, PartyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place[1].folder
    put(folder, with_token("maria", "administrator")[0])
    quick = users.users

    def slow(folder: Path) -> tuple[users.User, ...]:
        found = quick(folder)
        time.sleep(0.01)
        return found

    monkeypatch.setattr(users, "users", slow)
    threads = [threading.Thread(target=put, args=(folder, with_token(f"u{each}", "reader")[0])) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(quick(folder)) == 9


def test_who_is_removed_while_a_password_is_set_stays_removed(
    place: tuple[Study, PartyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest of a password takes long enough for an administrator to act in between."""
    folder = place[1].folder
    put(folder, with_token("root", "administrator")[0])
    form = {"present": PASSWORD, "new": f"{PASSWORD} two", "again": f"{PASSWORD} two"}
    slow = users.with_password
    reader = slow("eve", "reader", PASSWORD)
    for meanwhile, role in ((lambda: remove(folder, "eve"), None), (lambda: put(folder, reader), "reader")):
        put(folder, slow("eve", "administrator", PASSWORD))

        def setting(*given: Any, meanwhile: Any = meanwhile) -> users.User:
            meanwhile()
            return slow(*given)

        monkeypatch.setattr(users, "with_password", setting)
        with pytest.raises(RefusedError, match="changed or removed"):
            _password(folder, Asked(path={}, user="eve", form=form))
        found = find(folder, "eve")
        assert (found.role if found else None) == role


def test_a_reader_does_not_fill_the_log_with_made_up_addresses(place: tuple[Study, PartyFolder]) -> None:
    folder = place[1].folder
    put(folder, with_token("root", "administrator")[0])
    visitor = Visitor(folder, name="eve", role="reader")
    before = len(AuditLog(folder).records())
    for number in range(20):
        visitor.ask("POST", f"/studies/{number:064x}/agreement", 403, body={})
    assert len(AuditLog(folder).records()) == before + 1


def test_a_flood_of_sign_ins_leaves_room_for_those_who_are_signed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sign-in that waits takes one of the forty threads that also make pages."""
    desk, go = access.SignIn(tmp_path), threading.Event()
    monkeypatch.setattr(users, "by_password", lambda *_given: go.wait(20) and None)
    refused: list[float] = []

    def one(number: int) -> None:
        began = time.monotonic()
        try:
            desk.user(f"name{number}", PASSWORD)
        except RefusedError:
            refused.append(time.monotonic() - began)

    flood = [threading.Thread(target=one, args=(number,)) for number in range(40)]
    for each in flood:
        each.start()
    time.sleep(0.5)
    waiting = sum(each.is_alive() for each in flood)
    go.set()
    for each in flood:
        each.join()
    assert waiting <= 10
    assert len(refused) >= 30
