# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages network, nodes and BMC by Ansible: of 20 nodes beside the obvious playbook, and again of 100 beside 5.

And an unchanged site.yml of 20 nodes, beside an unchanged run of the obvious playbook, which makes much less.

On a lab host where all software is installed. The 100 VMs stay off, but the machine must have 13 GiB for them.

PYTHONPATH=playbooks/collections python3 tests/bench/bench_stages.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from support.lab_host import LabHost

ROOT = Path(__file__).parents[2]
STAGES = [ROOT / "playbooks" / f"{stage}.yml" for stage in ("network", "nodes", "bmc")]
FEW, SOME, MANY = 5, 20, 100
OURS, OTHERS = ("first", "second", "third"), ("obvious-one", "obvious-two")
SUBNETS = {name: 131 + at for at, name in enumerate(("few", "many", *OURS, *OTHERS))}
RERUNS = 4
LEAST_TIMES_FASTER, LEAST_TIMES_FASTER_UNCHANGED, MOST_FOR_MANY = 3.0, 4.0, 1.2
LONGEST_PLAY = 600
COLLECTION = "ansible_collections/community/libvirt/"

# As somebody writes it who has community.libvirt and the manuals of virsh, ip and sushy-emulator.
OBVIOUS = r"""
- hosts: hypervisors
  become: true
  gather_facts: false
  vars:
    directory: /var/lib/libvirt/images/{{ lab }}
    bmc: /etc/{{ lab }}-bmc
    gateway: 192.168.{{ subnet }}.1
    software: /opt/nometal/bmc/bin
  tasks:
    - name: Make directories
      ansible.builtin.file: {path: "{{ item }}", state: directory, mode: "0755"}
      loop: ["{{ directory }}", "{{ bmc }}"]

    - name: Define the network
      community.libvirt.virt_net:
        command: define
        name: "{{ lab }}"
        xml: "{{ lookup('ansible.builtin.template', 'network.xml.j2') }}"

    - name: Start the network
      community.libvirt.virt_net: {name: "{{ lab }}", state: active}

    - name: Start the network at boot
      community.libvirt.virt_net: {name: "{{ lab }}", autostart: true}

    - name: Reserve the nodes' addresses
      community.libvirt.virt_net:
        command: modify
        name: "{{ lab }}"
        xml: "<host mac='{{ item.mac }}' name='{{ item.name }}' ip='{{ item.ip }}'/>"
      loop: "{{ nodes }}"

    - name: Name the nodes in DNS
      ansible.builtin.command:
        argv:
          - virsh
          - net-update
          - "{{ lab }}"
          - add
          - dns-host
          - "<host ip='{{ item.ip }}'><hostname>{{ item.name }}.{{ lab }}.test</hostname></host>"
          - --live
          - --config
      register: named
      changed_when: named.rc == 0
      failed_when: named.rc != 0 and 'already' not in named.stderr
      loop: "{{ nodes }}"

    - name: Make the bridge and tie it to the network
      ansible.builtin.shell: |
        set -e
        ip link show br-{{ subnet }} || ip link add br-{{ subnet }} type bridge
        ip link show ve-{{ subnet }} || ip link add ve-{{ subnet }} type veth peer name vp-{{ subnet }}
        ip link set ve-{{ subnet }} master nt-{{ subnet }}
        ip link set vp-{{ subnet }} master br-{{ subnet }}
        for link in br ve vp; do ip link set $link-{{ subnet }} up; done

    - name: Make the disks
      ansible.builtin.command:
        cmd: qemu-img create -f qcow2 {{ directory }}/{{ item.name }}.qcow2 1G
        creates: "{{ directory }}/{{ item.name }}.qcow2"
      loop: "{{ nodes }}"

    - name: Define the VMs
      community.libvirt.virt:
        command: define
        xml: "{{ lookup('ansible.builtin.template', 'domain.xml.j2') }}"
      loop: "{{ nodes }}"

    - name: Make a certificate
      ansible.builtin.command:
        cmd: >-
          openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN={{ gateway }}
          -keyout {{ bmc }}/key.pem -out {{ bmc }}/cert.pem
        creates: "{{ bmc }}/cert.pem"

    # What `htpasswd -bB` writes, where the host has no apache2-utils.
    - name: Set the password
      ansible.builtin.shell:
        cmd: >-
          {{ software }}/python -c
          'import bcrypt; print("admin:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(5)).decode())' > {{ bmc }}/htpasswd
        creates: "{{ bmc }}/htpasswd"

    - name: Configure sushy-emulator
      ansible.builtin.template: {src: sushy.conf.j2, dest: "{{ bmc }}/sushy.conf", mode: "0600"}
      register: configured

    - name: Make a service of it
      ansible.builtin.template: {src: sushy.service.j2, dest: "/etc/systemd/system/{{ lab }}-bmc.service", mode: "0644"}

    - name: Start sushy-emulator
      ansible.builtin.systemd_service:
        name: "{{ lab }}-bmc"
        state: "{{ 'restarted' if configured is changed else 'started' }}"
        enabled: true
        daemon_reload: true

    - name: Wait until every system answers
      ansible.builtin.uri:
        url: https://{{ gateway }}:8000/redfish/v1/Systems/{{ item.name | to_uuid }}
        url_username: admin
        url_password: secret
        force_basic_auth: true
        validate_certs: false
      register: answer
      until: answer is success
      retries: 30
      delay: 1
      loop: "{{ nodes }}"
"""
TEMPLATES = {
    "network.xml.j2": """\
<network><name>{{ lab }}</name><forward mode='nat'/><bridge name='nt-{{ subnet }}'/><domain name='{{ lab }}.test'/>
<dns><host ip='192.168.{{ subnet }}.5'><hostname>api.{{ lab }}.test</hostname></host></dns>
<ip address='{{ gateway }}' prefix='24'><dhcp><range start='192.168.{{ subnet }}.200' end='192.168.{{ subnet }}.250'/>
</dhcp></ip></network>
""",
    "domain.xml.j2": """\
<domain type='qemu'><name>{{ item.name }}</name><uuid>{{ item.name | to_uuid }}</uuid>
<memory unit='MiB'>128</memory><vcpu>1</vcpu>
<os firmware='efi'><type machine='q35'>hvm</type></os><features><acpi/></features><devices>
<disk type='file'><driver name='qemu' type='qcow2'/><source file='{{ directory }}/{{ item.name }}.qcow2'/>
<target dev='sda' bus='scsi'/></disk><controller type='scsi' model='virtio-scsi'/>
<disk type='file' device='cdrom'><target dev='sdb' bus='sata'/></disk>
<interface type='bridge'><mac address='{{ item.mac }}'/><source bridge='br-{{ subnet }}'/><model type='virtio'/>
</interface><serial type='pty'/></devices></domain>
""",
    "sushy.conf.j2": """\
SUSHY_EMULATOR_LISTEN_IP = '{{ gateway }}'
SUSHY_EMULATOR_LISTEN_PORT = 8000
SUSHY_EMULATOR_SSL_CERT = '{{ bmc }}/cert.pem'
SUSHY_EMULATOR_SSL_KEY = '{{ bmc }}/key.pem'
SUSHY_EMULATOR_AUTH_FILE = '{{ bmc }}/htpasswd'
SUSHY_EMULATOR_LIBVIRT_URI = 'qemu:///system'
""",
    "sushy.service.j2": """\
[Unit]
After=libvirtd.service
[Service]
ExecStart={{ software }}/python -m sushy_tools.emulator.main --config {{ bmc }}/sushy.conf
Restart=on-failure
[Install]
WantedBy=multi-user.target
""",
}


def community_libvirt() -> Path:
    """A directory with that collection, of the package ansible that belongs to the ansible-core in use."""
    from support.cache import cache_dir, locked  # noqa: PLC0415 - its place is known only now

    core = metadata.version("ansible-core")
    path = cache_dir() / f"community.libvirt-{core}"
    with locked("community.libvirt"), tempfile.TemporaryDirectory(dir=path.parent) as directory:
        if not path.exists():
            options = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--dest", directory]
            packages = ["ansible", f"ansible-core=={core}"]
            subprocess.run([sys.executable, "-m", "pip", "download", *options, *packages], check=True)
            [wheel] = Path(directory).glob("ansible-*.whl")
            unfinished = Path(directory) / "unfinished"
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(unfinished, [name for name in packed.namelist() if name.startswith(COLLECTION)])
            unfinished.rename(path)
    return path


class Bench:
    """Labs on one host, each on a subnet of its own."""

    def __init__(self, host: LabHost, directory: Path) -> None:
        self._host, self._directory = host, directory
        self._environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(community_libvirt())}
        for name, text in {"obvious.yml": OBVIOUS, **TEMPLATES}.items():
            (directory / name).write_text(text, encoding="utf-8")

    def inventory(self, name: str, nodes: int) -> Path:
        """Of a lab for which the host has been made ready."""
        from support import checkout  # noqa: PLC0415 - as above

        tiny = {"vcpus": 1, "memory": "128MiB", "disks": [{"size": "1GiB"}]}
        network = {"cidr": f"192.168.{SUBNETS[name]}.0/24", "bridge": f"br-{name}"}
        pools = {"control_plane": {"count": 3, **tiny}, "workers": {"count": nodes - 3, **tiny}}
        made = checkout.inventory(self._host, self._directory, name=name, machine_network=network, nodes=pools)
        self._play(made, ROOT / "playbooks/host.yml")
        return made

    def ours(self, inventory: Path) -> float:
        return self._play(inventory, *STAGES)

    def site(self, inventory: Path) -> float:
        return self._play(inventory, ROOT / "playbooks/site.yml")

    def obvious(self, inventory: Path, lab: str, count: int) -> float:
        subnet = SUBNETS[lab]
        nodes = [
            {"name": f"{lab}-{at}", "mac": f"52:54:01:00:{subnet:02x}:{at:02x}", "ip": f"192.168.{subnet}.{at + 20}"}
            for at in range(count)
        ]
        variables = self._directory / f"{lab}.yml"
        variables.write_text(yaml.safe_dump({"lab": lab, "subnet": subnet, "nodes": nodes}), encoding="utf-8")
        return self._play(inventory, self._directory / "obvious.yml", "-e", f"@{variables}")

    def _play(self, inventory: Path, *arguments: Any) -> float:
        program = Path(sys.executable).with_name("ansible-playbook")
        command = [str(word) for word in (program, "-i", inventory, *arguments)]
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        start, cpu = time.monotonic(), cpu_of_children()
        done = subprocess.run(
            command, cwd=ROOT, env=self._environment, check=False, text=True, timeout=LONGEST_PLAY, **options
        )
        taken = time.monotonic() - start
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
        told = f"{taken:6.1f} s, {cpu_of_children() - cpu:4.1f} s of them on the controller's CPU: "
        sys.stdout.write(told + " ".join(Path(str(word)).name for word in (inventory, *arguments)) + "\n")
        return taken


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def beside_the_obvious(bench: Bench) -> bool:
    """Each run makes a lab from nothing: ours before, between and after the others, so that all meet the same load."""
    inventories = [bench.inventory(name, SOME) for name in OURS]
    times = [bench.ours(inventories[0])]
    others = []
    for inventory, name in zip(inventories[1:], OTHERS):
        others.append(bench.obvious(inventory, name, SOME))
        times.append(bench.ours(inventory))
    ours, obvious = min(times), min(others)
    sys.stdout.write(f"network, nodes and BMCs of {SOME} nodes: {ours:.1f} s; the obvious playbook: {obvious:.1f} s; ")
    sys.stdout.write(f"{obvious / ours:.1f} times faster (limit {LEAST_TIMES_FASTER:.0f})\n")
    return obvious / ours >= LEAST_TIMES_FASTER


def site_beside_the_obvious(bench: Bench) -> bool:
    """Of labs that are there. The first run of site.yml records what the stages alone have not."""
    inventory = bench.inventory(OURS[0], SOME)
    bench.site(inventory)
    times = [(bench.site(inventory), bench.obvious(inventory, OTHERS[0], SOME)) for _rerun in range(2)]
    ours, obvious = (min(of_each) for of_each in zip(*times))
    sys.stdout.write(f"unchanged site.yml of {SOME} nodes: {ours:.1f} s; the obvious playbook: {obvious:.1f} s; ")
    sys.stdout.write(f"{obvious / ours:.1f} times faster (limit {LEAST_TIMES_FASTER_UNCHANGED:.0f})\n")
    return obvious / ours >= LEAST_TIMES_FASTER_UNCHANGED


def unchanged(bench: Bench, few: Path) -> bool:
    many = bench.inventory("many", MANY)
    bench.ours(many)
    figures = [(bench.ours(few), bench.ours(many)) for _rerun in range(RERUNS)]
    of_few, of_many = (min(times) for times in zip(*figures))
    sys.stdout.write(f"unchanged rerun with {MANY} nodes: {of_many:.1f} s; with {FEW}: {of_few:.1f} s; ")
    sys.stdout.write(f"ratio {of_many / of_few:.2f} (limit {MOST_FOR_MANY})\n")
    return of_many / of_few <= MOST_FOR_MANY


def main() -> int:
    sys.path.append(str(ROOT / "tests"))
    from support import lab_host  # noqa: PLC0415 - as above

    with lab_host.start(layer="prepared", compiled=False) as host, tempfile.TemporaryDirectory() as directory:
        bench = Bench(host, Path(directory))
        few = bench.inventory("few", FEW)
        bench.ours(few)  # installs the software of the BMCs, which labs share
        return 0 if all([beside_the_obvious(bench), site_beside_the_obvious(bench), unchanged(bench, few)]) else 1


if __name__ == "__main__":
    sys.exit(main())
