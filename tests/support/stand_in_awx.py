"""A small API of AWX: the objects that role awx_setup has, with the rules by which AWX refuses them.

with stand_in_awx.start() as awx:
    subprocess.run([...], env=awx.environment())
    awx.all("job_templates")
"""

from __future__ import annotations

import json
import re
import threading
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from jinja2 import Environment, StrictUndefined, TemplateError
from markupsafe import Markup
from support import awx_surveys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOGIN = "of-the-stand-in"
API = "/api/v2/"
ENCRYPTED = "$encrypted$"
Object = dict[str, Any]


class RefusedError(Exception):
    def __init__(self, code: int, what: Object) -> None:
        super().__init__(str(what))
        self.code, self.what = code, what


def invalid(name: str, text: str) -> RefusedError:
    return RefusedError(400, {name: [text]})


@dataclass(frozen=True)
class Kind:
    """Fields with their defaults; those that refer to an object of another kind; those by which it is known."""

    one: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    refers: Mapping[str, str] = field(default_factory=dict)
    known_by: tuple[str, ...] = ("name", "organization")
    related: Mapping[str, str] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    goes_with: tuple[str, ...] = ()
    """The references with which it is removed."""
    is_run: bool = False


NOTIFIED = {f"notification_templates_{when}": "notification_templates" for when in ("started", "success", "error")}
ASKED = {f"ask_{what}_on_launch": False for what in ("limit", "tags", "skip_tags", "variables", "inventory")}
OF_ORGANIZATION = {"organization": "organizations"}
TEMPLATE_ROLES = ("admin_role", "execute_role", "read_role")
KINDS = {
    "organizations": Kind("organization", known_by=("name",), roles=("admin_role", "read_role")),
    "teams": Kind(
        "team", required=("organization",), refers=OF_ORGANIZATION, roles=("member_role",), goes_with=("organization",)
    ),
    "execution_environments": Kind(
        "execution_environment",
        {"image": "", "pull": ""},
        ("image",),
        {**OF_ORGANIZATION, "credential": "credentials"},
        ("name",),
        goes_with=("organization",),
    ),
    "applications": Kind("o_auth2_application", refers=OF_ORGANIZATION, goes_with=("organization",)),
    "credential_types": Kind(
        "credential_type", {"kind": "", "inputs": {}, "injectors": {}, "managed": False}, ("kind",), {}, ("name",)
    ),
    "credentials": Kind(
        "credential",
        {"inputs": {}},
        ("credential_type",),
        {**OF_ORGANIZATION, "credential_type": "credential_types"},
        ("name", "organization", "credential_type"),
        goes_with=("organization",),
    ),
    "notification_templates": Kind("notification_template", refers=OF_ORGANIZATION, goes_with=("organization",)),
    "projects": Kind(
        "project",
        {
            "scm_type": "",
            "scm_url": "",
            "scm_branch": "",
            "scm_revision": "",
            "scm_update_on_launch": False,
            "playbooks": [],
        },
        ("organization",),
        {**OF_ORGANIZATION, "credential": "credentials", "default_environment": "execution_environments"},
        related=NOTIFIED,
        is_run=True,
    ),
    "inventories": Kind(
        "inventory",
        {"kind": "", "host_filter": None, "variables": "", "pending_deletion": False},
        ("organization",),
        OF_ORGANIZATION,
        roles=("admin_role", "use_role", "read_role"),
        goes_with=("organization",),
    ),
    "inventory_sources": Kind(
        "inventory_source",
        {
            "source": "",
            "source_path": "",
            "source_vars": "",
            "overwrite": False,
            "overwrite_vars": False,
            "update_on_launch": False,
        },
        ("inventory", "source"),
        {"inventory": "inventories", "source_project": "projects"},
        ("name", "inventory"),
        NOTIFIED,
        goes_with=("inventory",),
        is_run=True,
    ),
    "job_templates": Kind(
        "job_template",
        {
            **ASKED,
            "ask_diff_mode_on_launch": False,
            "ask_job_type_on_launch": False,
            "ask_verbosity_on_launch": False,
            "job_type": "run",
            "playbook": "",
            "timeout": 0,
            "allow_simultaneous": False,
            "survey_enabled": False,
            "extra_vars": "",
        },
        ("project", "playbook"),
        {
            **OF_ORGANIZATION,
            "project": "projects",
            "inventory": "inventories",
            "execution_environment": "execution_environments",
        },
        related={**NOTIFIED, "credentials": "credentials"},
        roles=TEMPLATE_ROLES,
        is_run=True,
    ),
    "workflow_job_templates": Kind(
        "workflow_job_template",
        {**ASKED, "allow_simultaneous": False, "survey_enabled": False, "extra_vars": "", "limit": None},
        refers={**OF_ORGANIZATION, "inventory": "inventories"},
        related=NOTIFIED,
        roles=(*TEMPLATE_ROLES, "approval_role"),
        is_run=True,
    ),
    "workflow_job_template_nodes": Kind(
        "workflow_job_template_node",
        {"identifier": "", "all_parents_must_converge": False},
        ("workflow_job_template", "identifier"),
        {"workflow_job_template": "workflow_job_templates", "unified_job_template": "unified_job_templates"},
        ("identifier", "workflow_job_template"),
        {f"{when}_nodes": "workflow_job_template_nodes" for when in ("success", "failure", "always")},
        goes_with=("workflow_job_template", "unified_job_template"),
    ),
    "schedules": Kind(
        "schedule",
        {"rrule": "", "enabled": True},
        ("rrule", "unified_job_template"),
        {"unified_job_template": "unified_job_templates"},
        ("name", "unified_job_template"),
        goes_with=("unified_job_template",),
    ),
}
HAS_SURVEY = ("job_templates", "workflow_job_templates")
MODULES_ONLY = ("type",)
"""What a module sends that is no field of the object."""


class StandInAwx:
    """Objects by kind and number; associations and roles by the number of the object."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.objects: dict[str, dict[int, Object]] = {kind: {} for kind in KINDS}
        self.associated: dict[tuple[int, str], list[int]] = {}
        self.surveys: dict[int, Object] = {}
        self.holders: dict[int, list[int]] = {}
        self.secrets: dict[int, Object] = {}
        self.changes: list[str] = []
        self.playbooks: list[str] = []
        """Those that the project of a job template has."""
        self.number = 0
        self.url = ""

    def environment(self) -> dict[str, str]:
        return {"CONTROLLER_HOST": self.url, "CONTROLLER_OAUTH_TOKEN": LOGIN, "CONTROLLER_VERIFY_SSL": "false"}

    def all(self, kind: str) -> list[Object]:
        return [self._shown(kind, number) for number in self.objects[kind]]

    def named(self, kind: str, name: str) -> Object:
        [found] = [item for item in self.all(kind) if name in (item.get("name"), item.get("identifier"))]
        return found

    def names_of(self, item: Object, association: str) -> list[str]:
        kind = KINDS[self._kind_of(item["id"])].related[association]
        found = [self.objects[kind][number] for number in self.associated.get((item["id"], association), [])]
        return sorted(each.get("identifier") or each["name"] for each in found)

    def follow(self, node: str, status: str) -> list[str]:
        """The nodes of a workflow that run after one that has ended so."""
        item = self.named("workflow_job_template_nodes", node)
        return self.names_of(item, f"{status}_nodes") + self.names_of(item, "always_nodes")

    def fails_with(self, node: str) -> bool:
        """Whether a workflow has failed because this node has: not if another node follows then."""
        return self.follow(node, "failure") == []

    def variables(self, template: str, answers: Mapping[str, Any]) -> dict[str, Any]:
        """With which a job runs that is launched with these answers: those of its survey and of its credentials."""
        item = self.named("job_templates", template)
        variables = awx_surveys.variables_of(self.surveys[item["id"]]["spec"], answers)
        for number in self.associated.get((item["id"], "credentials"), []):
            kind = self.objects["credential_types"][self.objects["credentials"][number]["credential_type"]]
            for name, template_text in kind["injectors"].get("extra_vars", {}).items():
                variables[name] = rendered(template_text, self.secrets[number])
        return variables

    def _kind_of(self, number: int) -> str:
        return next(kind for kind, objects in self.objects.items() if number in objects)

    # --- what is asked over the network

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        url = urlsplit(target)
        kind, *below = url.path.removeprefix(API).strip("/").split("/")
        if kind == "roles":
            return self._role(method, int(below[0]), body)
        if not below and method == "POST":
            return 201, self._create(kind, body)
        if not below:
            return 200, self._page(self._found(kind, dict(parse_qsl(url.query))))
        number = int(below[0])
        if number not in self.objects.get(kind, {}):
            raise RefusedError(404, {"detail": "Not found."})
        return (
            self._below(method, kind, number, below[1], body) if below[1:] else self._of_one(method, kind, number, body)
        )

    def _of_one(self, method: str, kind: str, number: int, body: Any) -> tuple[int, Any]:
        if method == "PATCH":
            return 200, self._update(kind, number, body)
        if method == "DELETE":
            self._remove(kind, number)
            return (202 if kind == "inventories" else 204), {}
        return 200, self._shown(kind, number)

    def _found(self, kind: str, query: Mapping[str, str]) -> list[Object]:
        kinds = [name for name in KINDS if KINDS[name].is_run] if kind == "unified_job_templates" else [kind]
        if kinds == [kind] and kind not in KINDS:
            raise RefusedError(404, {"detail": "Not found."})
        items = [self._shown(name, number) for name in kinds for number in self.objects[name]]
        return [item for item in items if all(self._has(kind, item, *pair) for pair in query.items())]

    def _has(self, kind: str, item: Object, name: str, value: str) -> bool:
        reference = name.removesuffix("__name")
        if reference == name:
            return _matches(item, name, value)
        other = self.objects[KINDS[kind].refers[reference]].get(item[reference], {})
        return _matches(other, "name", value)

    def _page(self, items: list[Object]) -> Object:
        return {"count": len(items), "next": None, "previous": None, "results": items}

    def _shown(self, kind: str, number: int) -> Object:
        item = self.objects[kind][number]
        url = f"{API}{kind}/{number}/"
        roles = {
            name: {"id": number * 100 + place, "name": name} for place, name in enumerate(KINDS[kind].roles, start=1)
        }
        related = {"survey_spec": f"{url}survey_spec/"} if kind in HAS_SURVEY else {}
        shown = {**item, "id": number, "url": url, "type": KINDS[kind].one, "related": related}
        if "inputs" in item and kind == "credentials":
            secret = self._secret_inputs(item)
            shown["inputs"] = {name: ENCRYPTED if name in secret else value for name, value in item["inputs"].items()}
        return {**shown, "summary_fields": {"object_roles": roles}}

    def _create(self, kind: str, body: Object) -> Object:
        if kind not in KINDS:
            raise RefusedError(404, {"detail": "Not found."})
        about = KINDS[kind]
        defaults = {"name": "", "description": "", **about.fields, **dict.fromkeys(about.refers)}
        missing = [name for name in about.required if not body.get(name)]
        if missing:
            raise invalid(missing[0], "This field is required.")
        item = {**defaults, **self._read(kind, body)}
        self.number += 1
        self._check(kind, self.number, item)
        self.objects[kind][self.number] = item
        self.changes.append(f"create {about.one} {item.get('identifier') or item['name']}")
        return self._shown(kind, self.number)

    def _update(self, kind: str, number: int, body: Object) -> Object:
        item = {**self.objects[kind][number], **self._read(kind, body, number)}
        self._check(kind, number, item)
        self.objects[kind][number] = item
        self.changes.append(f"update {KINDS[kind].one} {item['name']}")
        return self._shown(kind, number)

    def _remove(self, kind: str, number: int) -> None:
        self.changes.append(f"remove {KINDS[kind].one} {self.objects[kind].pop(number)['name']}")
        for other, about in KINDS.items():
            for name in about.goes_with:
                if about.refers[name] in (kind, "unified_job_templates"):
                    for each in [at for at, item in self.objects[other].items() if item[name] == number]:
                        self._remove(other, each)

    def _read(self, kind: str, body: Object, number: int = 0) -> Object:
        about = KINDS[kind]
        known = {"name", "description", *about.fields, *about.refers}
        read: Object = {}
        for name, value in body.items():
            if name in MODULES_ONLY:
                continue
            if name not in known:
                raise invalid(name, f"the stand-in knows no such field of {about.one}")
            default = about.fields.get(name)
            read[name] = default if value is None and name in about.fields else value
            if name in about.fields and default is not None and type(read[name]) is not type(default):
                raise invalid(name, f"must be like {default!r}: {value!r}")
            if name in about.refers and value is not None and not self._is_there(about.refers[name], value):
                raise invalid(name, f"Invalid pk {value!r}: object does not exist.")
        if kind == "credentials" and "inputs" in read:
            old = self.secrets.get(number, {})
            read["inputs"] = {key: old[key] if value == ENCRYPTED else value for key, value in read["inputs"].items()}
        return read

    def _is_there(self, kind: str, number: Any) -> bool:
        kinds = [name for name in KINDS if KINDS[name].is_run] if kind == "unified_job_templates" else [kind]
        return any(number in self.objects[name] for name in kinds)

    def _check(self, kind: str, number: int, item: Object) -> None:
        known_by = KINDS[kind].known_by
        same = [
            at
            for at, other in self.objects[kind].items()
            if at != number and all(other.get(name) == item.get(name) for name in known_by)
        ]
        if same:
            raise RefusedError(
                400, {"__all__": [f"{KINDS[kind].one} with this {' and '.join(known_by)} already exists."]}
            )
        special = getattr(self, f"_check_{KINDS[kind].one}", None)
        if special:
            special(item)
        if kind == "credentials":
            self.secrets[number] = dict(item["inputs"])

    # --- rules of single kinds

    def _check_credential_type(self, item: Object) -> None:
        if item["kind"] not in ("cloud", "net"):
            raise invalid("kind", "Must be 'cloud' or 'net'")
        names = [each.get("id") for each in item["inputs"].get("fields", [])]
        for each in item["inputs"].get("fields", []):
            unknown = each.keys() - {
                "id",
                "label",
                "type",
                "secret",
                "multiline",
                "help_text",
                "choices",
                "format",
                "default",
            }
            if unknown or not {"id", "label"} <= each.keys() or each.get("type", "string") not in ("string", "boolean"):
                raise invalid("inputs", f"Schema validation failed: {each}")
            if not re.fullmatch("[a-zA-Z_]+[a-zA-Z0-9_]*", each["id"]) or each["id"] == "tower":
                raise invalid("inputs", f"{each['id']} is an invalid variable name")
        if not {*item["inputs"].get("required", [])} <= {*names}:
            raise invalid("inputs", "required names an unknown field")
        if item["injectors"].keys() - {"extra_vars", "env", "file"}:
            raise invalid("injectors", "Schema validation failed")
        try:
            for text in item["injectors"].get("extra_vars", {}).values():
                rendered(text, dict.fromkeys(names, "EXAMPLE"))
        except TemplateError as error:
            raise invalid("injectors", f"an undefined field is used: {error}") from error

    def _check_credential(self, item: Object) -> None:
        inputs = self.objects["credential_types"][item["credential_type"]]["inputs"]
        names = {each["id"] for each in inputs.get("fields", [])}
        if item["inputs"].keys() - names:
            raise invalid("inputs", f"unknown fields: {sorted(item['inputs'].keys() - names)}")
        if not all(isinstance(value, (str, bool)) for value in item["inputs"].values()):
            raise invalid("inputs", "values must be text")

    def _secret_inputs(self, item: Object) -> list[str]:
        fields = self.objects["credential_types"][item["credential_type"]]["inputs"].get("fields", [])
        return [each["id"] for each in fields if each.get("secret")]

    def _check_job_template(self, item: Object) -> None:
        if item["playbook"] not in self.playbooks:
            raise invalid("playbook", "Playbook not found for project.")
        if item["inventory"] is None and not item["ask_inventory_on_launch"]:
            raise invalid("inventory", "Job Template must provide 'inventory' or allow prompting for it.")
        if item["job_type"] not in ("run", "check"):
            raise invalid("job_type", "is no choice")

    def _check_inventory_source(self, item: Object) -> None:
        if item["source"] != "scm" or item["source_project"] is None:
            raise invalid("source_project", "Project required for scm type sources.")

    def _check_project(self, item: Object) -> None:
        if item["scm_type"] not in ("git", "") or (item["scm_type"] and not item["scm_url"]):
            raise invalid("scm_url", "SCM URL is required.")

    def _check_schedule(self, item: Object) -> None:
        rule = item["rrule"]
        if not re.match(r"DTSTART(;TZID=[^:]+)?:\d{8}T\d{6}Z? RRULE:", rule) or "FREQ=" not in rule:
            raise invalid("rrule", "Valid DTSTART required in rrule. Value should start with: DTSTART:YYYYMMDDTHHMMSSZ")
        if "INTERVAL=" not in rule:
            raise invalid("rrule", "INTERVAL required in rrule.")

    # --- what hangs on objects

    def _below(self, method: str, kind: str, number: int, what: str, body: Any) -> tuple[int, Any]:
        if what == "survey_spec" and kind in HAS_SURVEY:
            if method == "POST":
                fault = awx_surveys.fault_of(body)
                if fault:
                    raise RefusedError(400, {"error": fault})
                self.surveys[number] = body
                self.changes.append(f"survey of {self.objects[kind][number]['name']}")
            return 200, self.surveys.get(number, {})
        other = KINDS[kind].related.get(what)
        if other is None:
            raise RefusedError(404, {"detail": "Not found."})
        numbers = self.associated.setdefault((number, what), [])
        if method == "POST":
            self._associate(what, other, numbers, number, body)
            return 204, {}
        return 200, self._page([self._shown(other, each) for each in numbers if each in self.objects[other]])

    def _associate(self, what: str, other: str, numbers: list[int], number: int, body: Object) -> None:
        each = body["id"]
        if each not in self.objects[other]:
            raise RefusedError(400, {"msg": f"there is no {other} {each}"})
        self.changes.append(f"associate {what} of {number}")
        if body.get("disassociate"):
            numbers.remove(each)
            return
        if what == "credentials":
            types = [self.objects["credentials"][at]["credential_type"] for at in numbers]
            if self.objects["credentials"][each]["credential_type"] in types:
                raise RefusedError(400, {"error": "Cannot assign multiple credentials of a type."})
        if what.endswith("_nodes") and number in self._reached(each):
            raise RefusedError(400, {"Error": "Cycle detected."})
        numbers.append(each)

    def _reached(self, number: int) -> Iterator[int]:
        yield number
        for (parent, what), children in self.associated.items():
            if parent == number and what.endswith("_nodes"):
                for child in children:
                    yield from self._reached(child)

    def _role(self, method: str, role: int, body: Any) -> tuple[int, Any]:
        holders = self.holders.setdefault(role, [])
        if method == "POST":
            self.changes.append(f"role {role}")
            if body.get("disassociate"):
                holders.remove(body["id"])
            else:
                holders.append(body["id"])
            return 204, {}
        return 200, self._page([self._shown("teams", each) for each in holders])


def rendered(text: str, inputs: Mapping[str, Any]) -> str:
    """What an injector makes of the inputs of a credential."""
    safe = {name: Markup(value) for name, value in inputs.items()}  # noqa: S704 - they are not for HTML
    return str(Environment(autoescape=True, undefined=StrictUndefined).from_string(text).render(safe))


def _matches(item: Object, name: str, value: str) -> bool:
    if name.endswith("__startswith"):
        return str(item.get(name.removesuffix("__startswith"))).startswith(value)
    return str(item.get(name)).lower() == value.lower()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    awx: StandInAwx

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or "null") if length else None
        try:
            with self.awx.lock:
                code, answer = self.awx.answer(self.command, self.path, body)
        except RefusedError as error:
            code, answer = error.code, error.what
        if self.headers.get("Authorization") != f"Bearer {LOGIN}":
            code, answer = 401, {"detail": "Authentication credentials were not provided."}
        text = b"" if code == 204 else json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-API-Product-Name", "AWX")
        self.send_header("X-API-Product-Version", "24.6.1")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

    def log_message(self, *_arguments: Any) -> None:
        pass


class start:  # noqa: N801 - used as a function
    """With the objects of another one, if it is given."""

    def __init__(self, like: StandInAwx | None = None) -> None:
        self.awx = StandInAwx()
        if like:
            names = ("objects", "associated", "surveys", "holders", "secrets", "playbooks", "number")
            vars(self.awx).update(deepcopy({name: getattr(like, name) for name in names}))

    def __enter__(self) -> StandInAwx:
        handler = type("OfThisServer", (Handler,), {"awx": self.awx})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.awx.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self.awx

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
