"""Describes the host it runs on as JSON: {kind: {name: text}}. It needs nothing but Python 3.9.

Its first argument is a JSON list of path patterns to leave out of the files. Kinds that begin with "package " hold what
packages have brought, so that it can be left aside together with them.
"""

from __future__ import annotations

import fnmatch
import grp
import hashlib
import json
import os
import pwd
import re
import stat
import subprocess
import sys
from pathlib import Path

# Not part of the disk, even where nothing is mounted.
OTHER_FILE_SYSTEMS = ("/proc", "/sys", "/dev", "/run", "/tmp")  # noqa: S108 - nothing is written there
# But these parts of /run hold what others have configured, or what a lab may leave behind.
RUNTIME = (
    "run/nometal/[!l]*",  # not the locks: that of a run that ended with an error stays until the next one
    *("run/nometal-resolver", "run/nometal-resolver/*"),
    *("run/libvirt/network/[!d]*.pid", "run/libvirt/network/d[!r]*.pid"),  # not driver.pid: that of libvirt itself
    *("run/NetworkManager/conf.d/*", "run/systemd/network/*", "run/systemd/resolved.conf.d/*", "run/firewalld/*"),
)
# Of directories that are left out, since what is in their files changes by itself, these names are told all the same.
NAMES = (
    *("var/cache/nometal*", "var/cache/nometal*/*", "var/cache/nometal*/*/*"),
    *("var/log/libvirt/qemu/*", "var/log/nometal*"),
)
# Passwords, keys and what is made of them: other ones in each lab.
RANDOM = (
    *("/var/lib/nometal/bmc/*/credentials.json", "/var/lib/nometal/bmc/*/hashes.json"),
    *("/var/lib/nometal/bmc/*/config.json", "/var/lib/nometal/bmc/*/tls/*"),
    "/var/lib/nometal/bmc/*/state/events/*",  # with the times of logins
    "/opt/nometal/bmc/release-*/release.json",  # the times of all files are in it
)
# Those of single links come and go with them.
SYSCTLS = (
    *("net.ipv4.ip_*", "net.ipv4.conf.all.*", "net.ipv4.conf.default.*"),
    *("net.ipv6.conf.all.*", "net.ipv6.conf.default.*", "net.bridge.*", "net.core.*mem*"),
    "vm.overcommit_memory",
    "vm.nr_hugepages",
    "fs.inotify.max_user_instances",
    "kernel.unprivileged_userns_clone",
)


def output(*command: str) -> str:
    """What a command prints; nothing when the host does not have it."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True).stdout
    except FileNotFoundError:
        return ""


def lines(*command: str) -> list[str]:
    return [line for line in output(*command).splitlines() if line.strip()]


def packages() -> dict[str, str]:
    query = "${db:Status-Status} ${binary:Package} ${Version}\\n"
    found = (line.split() for line in lines("dpkg-query", "--show", "--showformat", query))
    return {fields[1]: fields[2] for fields in found if fields[0] == "installed"}


def package_paths() -> set[str]:
    """Every path that a package owns, as it is on a disk where /lib is a link to /usr/lib."""
    found = set()
    for listing in Path("/var/lib/dpkg/info").glob("*.list"):
        found.update(listing.read_text(errors="replace").splitlines())
    found.update(["/usr" + path for path in found if path.startswith(("/bin/", "/sbin/", "/lib"))])
    return found


def changed_conffiles() -> set[str]:
    """Configuration that a package owns and somebody has edited."""
    query = lines("dpkg-query", "--show", "--showformat", "${Conffiles}\\n")
    found = set()
    for path, digest in (line.split()[:2] for line in query if len(line.split()) > 1):
        if Path(path).is_file() and hashlib.md5(Path(path).read_bytes()).hexdigest() != digest:  # noqa: S324 - dpkg's choice
            found.add(path)
    return found


def services(owned: set[str]) -> dict[str, dict[str, str]]:
    enabled = {
        fields[0]: fields[1]
        for fields in map(str.split, lines("systemctl", "list-unit-files", "--no-legend", "--plain"))
    }
    active = {}
    for fields in map(str.split, lines("systemctl", "list-units", "--all", "--no-legend", "--plain")):
        active[fields[0]] = fields[2]
    kinds = (".service", ".socket", ".timer", ".path", ".target")
    found: dict[str, dict[str, str]] = {"services": {}, "package services": {}}
    for unit in sorted(set(enabled) | {unit for unit, state in active.items() if state in ("active", "failed")}):
        if unit.endswith(kinds):
            template = re.sub("@.*\\.", "@.", unit)
            kind = "package services" if "/usr/lib/systemd/system/" + template in owned else "services"
            found[kind][unit] = "{}, {}".format(enabled.get(unit, "no file"), active.get(unit, "inactive"))
    return found


def files(left_out: list[str], owned: set[str], changed: set[str]) -> dict[str, dict[str, str]]:
    owners = {entry.pw_uid: entry.pw_name for entry in pwd.getpwall()}
    groups = {entry.gr_gid: entry.gr_name for entry in grp.getgrall()}
    skipped = re.compile("|".join(fnmatch.translate(pattern) for pattern in [*left_out, *OTHER_FILE_SYSTEMS]))
    found: dict[str, dict[str, str]] = {"files": {}, "package files": {}}

    disk = Path("/").stat().st_dev

    def visit(directory: str) -> None:
        for entry in os.scandir(directory):
            about = entry.stat(follow_symlinks=False)
            mounted_here = entry.is_dir(follow_symlinks=False) and about.st_dev != disk
            if mounted_here or skipped.match(entry.path):
                continue
            owner, group = owners.get(about.st_uid, about.st_uid), groups.get(about.st_gid, about.st_gid)
            kind = "package files" if entry.path in owned and entry.path not in changed else "files"
            text = f"{stat.filemode(about.st_mode)} {owner}:{group} {content(entry, about, kind)}"
            found[kind][entry.path] = text.rstrip()
            if entry.is_dir(follow_symlinks=False):
                visit(entry.path)

    visit("/")
    # What is in those of /run are numbers of processes and links.
    for path in (path for pattern in (*RUNTIME, *NAMES) for path in Path("/").glob(pattern)):
        about = path.lstat()
        owner, group = owners.get(about.st_uid, about.st_uid), groups.get(about.st_gid, about.st_gid)
        found["files"][str(path)] = f"{stat.filemode(about.st_mode)} {owner}:{group}"
    return found


def content(entry: os.DirEntry[str], about: os.stat_result, kind: str) -> str:
    if stat.S_ISLNK(about.st_mode):
        return "-> " + str(Path(entry.path).readlink())
    if not stat.S_ISREG(about.st_mode):
        return ""
    if kind == "package files" and entry.path.startswith("/usr/"):  # reading them all would take too long
        return f"{about.st_size} bytes of {about.st_mtime:.0f}"
    if about.st_size > 64 * 2**20:  # guests' disks
        return f"{about.st_size} bytes"
    if any(fnmatch.fnmatchcase(entry.path, pattern) for pattern in RANDOM):
        return "random"
    return hashlib.sha256(Path(entry.path).read_bytes()).hexdigest()[:16]


def links() -> dict[str, str]:
    """Without MAC addresses: those of virtual links are mostly random."""
    found = {}
    for link in json.loads(output("ip", "-json", "-details", "link") or "[]"):
        kind = link.get("linkinfo", {}).get("info_kind", "")
        facts = [kind, "mtu {}".format(link["mtu"]), "up" if "UP" in link["flags"] else "down"]
        if link.get("master"):
            facts.append("in " + link["master"])
        found[link["ifname"]] = " ".join(fact for fact in facts if fact)
    return found


def is_link_local(text: str) -> bool:
    """Made by the kernel out of a MAC address."""
    return re.search(r"\bfe80::(?!/)", text) is not None


def addresses() -> dict[str, str]:
    found = {}
    for link in json.loads(output("ip", "-json", "address") or "[]"):
        for address in link["addr_info"]:
            text = "{}/{}".format(address["local"], address["prefixlen"])
            if not is_link_local(text):
                found["{} {}".format(link["ifname"], text)] = address["scope"]
    return found


def routes() -> dict[str, str]:
    found = lines("ip", "-4", "route", "show", "table", "all") + lines("ip", "-6", "route", "show", "table", "all")
    found += ["rule " + line for line in lines("ip", "rule") + lines("ip", "-6", "rule")]
    return {re.sub(r" expires \S+|(?<=\s)\s+", "", line).strip(): "" for line in found if not is_link_local(line)}


def firewall() -> dict[str, str]:
    """One entry per rule, in the order of its chain, without the counters."""
    found: dict[str, str] = {}
    table = chain = ""
    for line in lines("nft", "list", "ruleset"):
        text = re.sub(r"counter packets \d+ bytes \d+ ?", "", line.strip())
        if text.startswith("table "):
            table, chain = text.rstrip(" {"), ""
        elif text.startswith("chain "):
            chain = text.rstrip(" {")
        if text != "}" and not text.startswith("#"):
            place = f"{table} {chain}" if chain else table
            found[place] = found.get(place, "") + "\n" + text
    for program in ("iptables", "ip6tables"):
        found |= legacy_rules(program)
    return {place: rules.strip() for place, rules in found.items()}


def legacy_rules(program: str) -> dict[str, str]:
    """Of the kernel's older interface, for which the same program has another name."""
    found: dict[str, str] = {}
    table = ""
    for line in lines(f"{program}-legacy-save"):
        text = re.sub(r" \[\d+:\d+\]", "", line)
        if text.startswith("*"):
            table = text[1:]
        elif text.startswith((":", "-A ")):
            chain, _space, rest = text.partition("-A ")[2].partition(" ") if text[0] == "-" else text[1:].partition(" ")
            place = f"legacy {program} {table} {chain}"
            found[place] = (found.get(place, "") + f"\n{rest}").strip()
    # Whoever looks at a table makes its chains, with nothing in them.
    return {place: rules for place, rules in found.items() if rules != "ACCEPT"}


def resolver() -> dict[str, str]:
    text = Path("/etc/resolv.conf").read_text(errors="replace") if Path("/etc/resolv.conf").exists() else "absent"
    return {"/etc/resolv.conf": text, "resolvectl": output("resolvectl", "dns") + output("resolvectl", "domain")}


def sysctls() -> dict[str, str]:
    found = {}
    for pattern in SYSCTLS:
        for path in Path("/proc/sys").glob(pattern.replace(".", "/")):
            if os.access(path, os.R_OK) and path.name != "stable_secret":  # a secret that is not there is an error
                found[".".join(path.parts[3:])] = path.read_text().strip()
    return found


def mounts() -> dict[str, str]:
    found = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return {fields[1]: fields[2] for fields in found}


def is_made_by_packages(number: int) -> bool:
    """Debian's policy: the numbers of users and groups that packages make for their services."""
    return 0 < number < 1000 or 60000 <= number < 65000


def users() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"users": {}, "package users": {}}
    for user in pwd.getpwall():
        kind = "package users" if is_made_by_packages(user.pw_uid) else "users"
        found[kind]["user " + user.pw_name] = f"{user.pw_dir} {user.pw_shell}"
    for group in grp.getgrall():
        kind = "package users" if is_made_by_packages(group.gr_gid) else "users"
        found[kind]["group " + group.gr_name] = ""
        for member in group.gr_mem:
            kind = "package users" if "user " + member in found["package users"] else "users"
            found[kind][f"{member} in group {group.gr_name}"] = ""
    return found


def processes(owned: set[str]) -> dict[str, dict[str, str]]:
    """How many of each name, except this probe with its parents, and the sessions of whoever else is in by ssh."""
    own = set()
    pid = os.getpid()
    while pid > 0:
        own.add(pid)
        pid = int(status(pid).get("PPid", "0"))
    found: dict[str, dict[str, str]] = {"processes": {}, "package processes": {}}
    for pid in {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()} - own:
        name = status(pid).get("Name", "")
        if name and not (name.startswith("sshd") and is_session(pid)):
            counts = found["package processes" if unit_path(pid) in owned else "processes"]
            counts[name] = str(int(counts.get(name, "0")) + 1)
    return found


def is_session(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return True
    return "listener" not in words and not words.endswith("-D\0")


def unit_path(pid: int) -> str:
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return ""
    unit = next((line.rpartition("/")[2] for line in groups if line.startswith("0::")), "")
    return "/usr/lib/systemd/system/" + unit


def status(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    return {key: value.strip() for key, _colon, value in (line.partition(":") for line in text.splitlines())}


def libvirt_objects() -> dict[str, str]:
    """Asked by the client, because the host's Python may lack libvirt; not asked when no daemon answers."""
    virsh = ["virsh", "--quiet", "--connect", "qemu:///system"]
    if not output(*virsh, "uri"):
        return {}
    found = {"nwfilter " + line.split()[-1]: "" for line in lines(*virsh, "nwfilter-list")}
    for name in map(str.strip, lines(*virsh, "net-list", "--all", "--name")):
        # The bridge's MAC and the UUID are random unless given.
        xml = re.sub(r"\n  <(mac address|uuid).*", "", output(*virsh, "net-dumpxml", "--inactive", name))
        found["network " + name] = state(virsh, "net-info", name) + xml.strip()
    for name in map(str.strip, lines(*virsh, "pool-list", "--all", "--name")):
        # Sizes are measured by libvirt.
        xml = re.sub(r"\n  <(uuid|capacity|allocation|available).*", "", output(*virsh, "pool-dumpxml", name))
        found["pool " + name] = state(virsh, "pool-info", name) + xml.strip()
        for volume in lines(*virsh, "vol-list", name):
            found[f"volume {name}/{volume.split()[0]}"] = volume.split()[-1]
    for name in map(str.strip, lines(*virsh, "list", "--all", "--name")):
        xml = output(*virsh, "dumpxml", "--inactive", name)
        found["domain " + name] = output(*virsh, "domstate", name).strip() + "\n" + xml.strip()
    return found


def state(virsh: list[str], command: str, name: str) -> str:
    wanted = ("Active:", "State:", "Persistent:", "Autostart:")
    return "".join(" ".join(line.split()) + "\n" for line in lines(*virsh, command, name) if line.startswith(wanted))


def main() -> None:
    owned = package_paths()
    found = {
        "packages": packages(),
        **services(owned),
        **files(json.loads(sys.argv[1]), owned, changed_conffiles()),
        "links": links(),
        "addresses": addresses(),
        "routes": routes(),
        "firewall": firewall(),
        "resolver": resolver(),
        "sysctls": sysctls(),
        "mounts": mounts(),
        **users(),
        **processes(owned),
        "libvirt": libvirt_objects(),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
