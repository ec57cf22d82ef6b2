# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows from a specification."""

from __future__ import annotations

from typing import Any

import pytest
from unit.lab.samples import errors_of, model_of

from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import LabSpecError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

V6 = "machine_network: {cidr_v6: 'fd00:1::/64'}"
DUAL = "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64'}"
PXE = "provisioning_network: {}\nbmc: {protocol: ipmi}"


def node(lab: dict[str, Any], name: str) -> dict[str, Any]:
    return next(item for item in lab["nodes"] if item["name"] == name)


def addresses(lab: dict[str, Any]) -> dict[str, list[str]]:
    return {item["name"]: item["ips"] for item in lab["nodes"]}


def test_a_name_is_enough() -> None:
    lab = model_of("name: demo")
    assert lab["domain"] == "demo.lab.example.test"
    assert lab["owner"] == "demo"
    assert lab["machine_networks"] == ["192.168.126.0/24"]
    assert lab["vips"] == {"api": ["192.168.126.5"], "ingress": ["192.168.126.6"]}
    assert addresses(lab) == {f"control-plane-{number}": [f"192.168.126.2{number}"] for number in range(3)}
    assert lab["storage_pool"]["path"] == "/var/lib/libvirt/images/nometal-demo"
    assert lab["control_plane"] == {"replicas": 3, "arbiters": 0, "workers": 0, "fencing": False}
    assert (lab["install"], lab["provisioning_network"]) == (None, None)


def test_the_pool_lies_where_the_specification_says() -> None:
    derived, named = model_of(""), model_of("storage_pool: {path: /srv/labs/demo}")
    assert named["storage_pool"] == {**derived["storage_pool"], "path": "/srv/labs/demo"}
    assert model_of("storage_pool:") == model_of("storage_pool: {path: }") == derived


def test_growth_moves_nobody() -> None:
    small, large = model_of("nodes: {workers: {count: 2}}"), model_of("nodes: {workers: {count: 60}}")
    kept = addresses(large)
    assert {name: kept[name] for name in addresses(small)} == addresses(small)
    assert large["vips"] == small["vips"]


def test_a_number_that_is_left_out_moves_nobody() -> None:
    spec = "nodes: {{workers: {{count: {}}}, spares: {{count: 1}}, overrides: {{worker-1: {{remove: {}}}}}}}"
    whole, less = model_of(spec.format(4, "false")), model_of(spec.format(3, "true"))
    assert less["control_plane"]["workers"] == 3
    kept = addresses(less)
    assert kept == {name: ips for name, ips in addresses(whole).items() if name != "worker-1"}
    assert node(less, "worker-3") == node(whole, "worker-3")
    by_ipmi = model_of(f"{PXE}\n{spec.format(3, 'true')}")
    assert node(by_ipmi, "worker-3")["bmc"] == node(model_of(f"{PXE}\n{spec.format(4, 'false')}"), "worker-3")["bmc"]


def test_small_network() -> None:
    lab = model_of("machine_network: {cidr: 10.0.0.0/28}\nnodes: {workers: {count: 4}}")
    network = lab["networks"][0]
    assert lab["vips"] == {"api": ["10.0.0.2"], "ingress": ["10.0.0.3"]}
    # The last two have only the place that is kept for a bootstrap VM of fixed address, and nothing above the pools.
    assert [item["ips"][0] for item in lab["nodes"]] == [f"10.0.0.{last}" for last in (5, 6, 7, 8, 9, 10, 4)]
    assert network["dhcp"]["ranges"] == [{"start": "10.0.0.11", "end": "10.0.0.12", "family": "ipv4"}]
    assert [network["dhcp"]["pools"][0][end] for end in ("start", "end")] == ["10.0.0.13", "10.0.0.14"]


@pytest.mark.parametrize("prefix", range(64, 124))
def test_any_prefix_of_ipv6_that_is_large_enough(prefix: int) -> None:
    assert errors_of({"name": "ha", "machine_network": {"cidr_v6": f"fd00:1::/{prefix}"}}) == []


def test_ipv6_only() -> None:
    lab = model_of(V6)
    assert lab["machine_networks"] == ["fd00:1::/64"]
    assert lab["vips"]["api"] == ["fd00:1::5"]
    assert node(lab, "control-plane-0")["ips"] == ["fd00:1::14"]
    assert node(lab, "control-plane-0")["bmc"]["address"].startswith(
        "redfish-virtualmedia+https://[fd00:1::1]:8000/redfish/v1/Systems/"
    )
    reservation = lab["networks"][0]["dhcp"]["reservations"][0]
    assert reservation["duid"] == f"00:03:00:01:{reservation['mac']}"


def test_dual_stack_has_ipv4_first() -> None:
    lab = model_of(DUAL)
    assert lab["machine_networks"] == ["192.168.126.0/24", "fd00:1::/64"]
    assert lab["vips"]["ingress"] == ["192.168.126.6", "fd00:1::6"]
    assert node(lab, "control-plane-1")["ips"] == ["192.168.126.21", "fd00:1::15"]
    assert {item["ip"] for item in lab["networks"][0]["dns"]["wildcards"]} == {"192.168.126.6", "fd00:1::6"}


@pytest.mark.parametrize("order", ["[192.168.126.77, 'fd00:1::77']", "['fd00:1::77', 192.168.126.77]"])
def test_pinned_addresses_come_in_the_order_of_the_lab(order: str) -> None:
    lab = model_of(f"{DUAL}\nnodes: {{overrides: {{control-plane-1: {{ip: {order}}}}}}}")
    assert node(lab, "control-plane-1")["ips"] == ["192.168.126.77", "fd00:1::77"]


def test_old_releases_have_one_vip() -> None:
    assert model_of(f"{DUAL}\ninstall: {{version: 4.11.9}}")["vips"]["api"] == ["192.168.126.5"]
    assert len(model_of(f"{DUAL}\ninstall: {{version: 4.12.0}}")["vips"]["api"]) == 2


def test_one_pinned_vip_stays_the_only_one() -> None:
    text = "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', vips: {api: 192.168.126.7}}"
    assert model_of(text)["vips"] == {"api": ["192.168.126.7"], "ingress": ["192.168.126.6"]}


def test_veth_topology() -> None:
    lab = model_of("")
    assert (lab["networks"][0]["name"], lab["networks"][0]["bridge"]) == ("nometal-ha", "nm-ha")
    assert lab["veth_pairs"] == [
        {
            "name": "nmn-ha",
            "a": {"name": "nmn-ha", "bridge": "nm-ha"},
            "b": {"name": "nmb-ha", "bridge": "baremetal"},
            "mtu": 1500,
            "shared": False,
            "state": "present",
        }
    ]
    nic = lab["nodes"][0]["nics"][0]
    assert (nic["network"], nic["bridge"]) == (None, "baremetal")


def test_on_a_shared_lan_only_reservations_are_served() -> None:
    lab = model_of("machine_network: {shared_lan: true}\nbootstrap: {address: reserved}")
    [network], [pair] = lab["networks"], lab["veth_pairs"]
    assert (network["dhcp"]["ranges"], network["dhcp"]["pools"], network["dhcp"]["known_only"]) == ([], [], True)
    reserved = [item["mac"] for item in network["dhcp"]["reservations"]]
    assert reserved == [*(node["boot_mac"] for node in lab["nodes"]), lab["bootstrap"]["mac"]]
    assert pair["shared"]


def test_direct_topology_names_the_network_like_its_bridge() -> None:
    lab = model_of("machine_network: {topology: direct, bridge: lab0}")
    assert (lab["networks"][0]["name"], lab["networks"][0]["bridge"]) == ("lab0", "lab0")
    assert [pair["state"] for pair in lab["veth_pairs"]] == ["absent"]
    nic = lab["nodes"][0]["nics"][0]
    assert (nic["network"], nic["bridge"]) == ("lab0", None)


@pytest.mark.parametrize("name", ["a" * 54, "a" * 53 + "b", "exactly-nine", "openshift-lab-one", "openshift-lab-two"])
def test_long_names_make_short_interfaces(name: str) -> None:
    lab = model_of(f"name: {name}")
    pair = lab["veth_pairs"][0]
    names = [lab["networks"][0]["bridge"], pair["a"]["name"], pair["b"]["name"]]
    assert all(len(item) <= 15 for item in names)
    assert len(set(names)) == 3


def test_labs_of_similar_names_share_no_interface() -> None:
    labs = [model_of(f"name: {name}") for name in ("openshift-lab-one", "openshift-lab-two", "n", "b", "ha-n", "ha")]
    names = [end["name"] for lab in labs for pair in lab["veth_pairs"] for end in (pair["a"], pair["b"])]
    names += [lab["networks"][0]["bridge"] for lab in labs]
    assert len(set(names)) == len(names)


def test_pxe_with_ipmi() -> None:
    lab = model_of(f"{PXE}\nnodes: {{spares: {{count: 1}}}}")
    assert [item["bmc"]["address"] for item in lab["nodes"]] == [f"ipmi://192.168.126.1:{6230 + n}" for n in range(4)]
    assert lab["bmc"]["listen"] == ["192.168.126.1", "172.22.0.1"]
    assert (lab["bmc"]["ports"], lab["bmc"]["tls"], lab["bmc"]["url"]) == ([6230, 6231, 6232, 6233], False, None)
    first = lab["nodes"][0]
    assert [nic["role"] for nic in first["nics"]] == ["provisioning", "machine"]
    assert first["boot_mac"] == first["nics"][0]["mac"]
    assert lab["provisioning_network"] == {
        "mode": "managed",
        "name": "provisioning",
        "bridge": "provisioning",
        "cidr": "172.22.0.0/24",
        "host_ip": "172.22.0.1",
        "bootstrap_ip": "172.22.0.2",
        "cluster_ip": "172.22.0.3",
        "dhcp_range": {"start": "172.22.0.10", "end": "172.22.0.254"},
    }
    provisioning = lab["networks"][1]
    assert (provisioning["name"], provisioning["bridge"], provisioning["forward"]) == (
        "provisioning",
        "provisioning",
        "isolated",
    )
    assert provisioning["dhcp"] == {"ranges": [], "reservations": [], "pools": [], "known_only": False}


def test_unmanaged_provisioning_has_no_range() -> None:
    lab = model_of("provisioning_network: {mode: unmanaged, cidr: 172.22.0.0/28}")
    assert lab["provisioning_network"]["dhcp_range"] is None


def test_pxe_by_redfish_without_tls() -> None:
    lab = model_of("provisioning_network: {}\nbmc: {protocol: redfish, tls: false, port: 9000}")
    uuid = lab["nodes"][0]["uuid"]
    assert lab["nodes"][0]["bmc"]["address"] == f"redfish+http://192.168.126.1:9000/redfish/v1/Systems/{uuid}"
    assert lab["bmc"]["endpoints"] == [
        {"address": "192.168.126.1", "port": 9000, "protocol": "tcp"},
        {"address": "172.22.0.1", "port": 9000, "protocol": "tcp"},
    ]


def test_bootstrap_by_pool_has_a_pool_of_its_own() -> None:
    lab = model_of("")
    assert lab["bootstrap"]["mode"] == "pool"
    assert lab["networks"][0]["dhcp"]["pools"] == [
        {
            "mac_prefix": "52:54:00",
            "start": "192.168.126.10",
            "end": "192.168.126.17",
            "family": "ipv4",
            "static_routes": [],
        }
    ]


def test_bootstrap_takes_the_pool_that_serves_it() -> None:
    lab = model_of(
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.130, end: 192.168.126.135,"
        " static_routes: [{to: 10.0.0.0/19, via: 192.168.126.2}]}]}"
    )
    pools = lab["networks"][0]["dhcp"]["pools"]
    assert [pool["start"] for pool in pools] == ["192.168.126.130"]
    assert pools[0]["static_routes"] == [{"to": "10.0.0.0/19", "via": "192.168.126.2"}]


def test_bootstrap_by_reservation() -> None:
    lab = model_of("bootstrap: {address: reserved}")
    own = lab["bootstrap"]
    assert (own["mode"], own["ip"]) == ("reserved", "192.168.126.9")
    assert own["mac"].startswith("52:54:00:")
    reservation = next(r for r in lab["networks"][0]["dhcp"]["reservations"] if r["name"] == "bootstrap")
    assert (reservation["mac"], reservation["ips"]) == (own["mac"], ["192.168.126.9"])
    assert lab["networks"][0]["dhcp"]["pools"] == []


def test_bootstrap_with_static_address_has_all_three_values() -> None:
    own = model_of(f"{DUAL}\nbootstrap: {{address: static}}")["bootstrap"]
    assert (own["ips"], own["mac"]) == (["192.168.126.9"], None)
    assert (own["ip"], own["gateway"], own["dns"]) == ("192.168.126.9", "192.168.126.1", "192.168.126.1")


def test_dns() -> None:
    lab = model_of(
        "machine_network: {"
        "reservations: [{name: printer, mac: '52:54:00:00:00:01', ip: 192.168.126.9}], dns: {records: {"
        "mirror: {addresses: [192.0.2.1]}, '*.pages.test': {addresses: [192.0.2.2]}, "
        "_ldap._tcp.corp.test: {srv: [{target: ldap.corp.test, port: 389}]}, note.corp.test: {txt: [hello]}}}}"
    )
    dns = lab["networks"][0]["dns"]
    names = {name: host["ip"] for host in dns["hosts"] for name in host["names"]}
    domain = "ha.lab.example.test"
    assert names[f"api.{domain}"] == names[f"api-int.{domain}"] == "192.168.126.5"
    assert names[f"control-plane-2.{domain}"] == "192.168.126.22"
    assert names[f"printer.{domain}"] == "192.168.126.9"
    assert names[f"mirror.{domain}"] == "192.0.2.1"
    assert dns["wildcards"] == [
        {"domain": f"apps.{domain}", "ip": "192.168.126.6"},
        {"domain": "pages.test", "ip": "192.0.2.2"},
    ]
    srv = {"service": "ldap", "protocol": "tcp", "domain": "corp.test", "target": "ldap.corp.test", "port": 389}
    assert dns["records"]["srv"] == [{**srv, "priority": 0, "weight": 0}]
    assert dns["records"]["txt"] == [{"name": "note.corp.test", "value": "hello"}]


def test_roles_and_spares() -> None:
    lab = model_of("nodes: {control_plane: {count: 2}, arbiters: {count: 1}, workers: {count: 1}, spares: {count: 1}}")
    assert [(item["role"], item["installer"]) for item in lab["nodes"]] == [
        ("control-plane", True),
        ("control-plane", True),
        ("arbiter", True),
        ("worker", True),
        ("spare", False),
    ]


@pytest.mark.parametrize("control_plane", [0, 1, 2, 4])
@pytest.mark.parametrize("workers", [1, 2])
def test_other_installers_may_have_any_number_of_nodes(control_plane: int, workers: int) -> None:
    lab = model_of(f"nodes: {{control_plane: {{count: {control_plane}}}, workers: {{count: {workers}}}}}")
    assert [node["role"] for node in lab["nodes"]] == ["control-plane"] * control_plane + ["worker"] * workers


def test_everything_derived_can_be_pinned() -> None:
    lab = model_of(
        "hypervisors: [one]\n"
        "nodes: {workers: {count: 2}, overrides: {worker-1: {ip: 192.168.126.99, mac: '52:54:00:AA:BB:CC', "
        "uuid: 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11, hypervisor: one, vcpus: 8, memory: 12GiB, firmware: bios, "
        "disks: [{size: 10GiB}, {size: 1TiB, bus: sata, serial: mine, rotational: true}], "
        "root_device_hints: {serialNumber: mine}, network_config: {interfaces: []}}}}"
    )
    pinned = node(lab, "worker-1")
    assert pinned["ips"] == ["192.168.126.99"]
    assert pinned["boot_mac"] == "52:54:00:aa:bb:cc"
    assert pinned["uuid"] == "8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11"
    assert (pinned["hypervisor"], pinned["vcpus"], pinned["memory_mib"]) == ("one", 8, 12288)
    assert (pinned["firmware"], pinned["root_device_hints"]) == ("bios", {"serialNumber": "mine"})
    assert pinned["network_config"] == {"interfaces": []}
    assert [disk["size_bytes"] for disk in pinned["disks"]] == [10 * 1024**3, 1024**4]
    assert [disk["rotational"] for disk in pinned["disks"]] == [False, True]
    assert node(lab, "worker-0")["ips"] == ["192.168.126.30"]


def test_the_inventory_names_the_hypervisors_where_the_specification_does_not() -> None:
    lab = lab_model({"name": "ha"}, ["big-box"])
    assert lab["hypervisors"] == ["big-box"]
    assert {item["hypervisor"] for item in lab["nodes"]} == {"big-box"}
    here, there = lab_model({"name": "ha"}), lab
    assert [item["uuid"] for item in here["nodes"]] == [item["uuid"] for item in there["nodes"]]


def test_inventory_and_specification_must_name_the_same_hypervisors() -> None:
    with pytest.raises(LabSpecError) as caught:
        lab_model({"name": "ha", "hypervisors": ["two"]}, ["one"])
    right = "left out, or the hosts of the inventory's group hypervisors, one"
    assert str(caught.value).splitlines()[1:] == [f"- lab_spec.hypervisors: must be {right} (got 'two')"]


def test_totals_by_hypervisor() -> None:
    lab = model_of(
        "hypervisors: [one]\n"
        "nodes: {control_plane: {vcpus: 4, memory: 16GiB, disks: [{size: 100GiB}, {size: 20GiB}]}, }"
    )
    each = {"nodes": 1, "vcpus": 4, "memory_mib": 16384, "disk_bytes": 120 * 1024**3}
    assert lab["totals"]["lab"] == {key: 3 * value for key, value in each.items()}
    assert lab["totals"]["hypervisors"] == {"one": lab["totals"]["lab"]}


@pytest.mark.parametrize(
    ("version", "channel", "release"),
    [
        ("stable-4.20", "stable", (4, 20)),
        ("'4.20.3'", None, (4, 20)),
        ("'5.0.1'", None, (5, 0)),
        ("4.21.0-rc.1", None, (4, 21)),
        ("4.20.0-okd-scos.3", None, (4, 20)),
        ("latest-5.1", "latest", (5, 1)),
        ("5.0-alpha.2-66-g1966debed4", None, (5, 0)),
        ("unreleased-master-12272-g349feecf1e", None, (5, 2)),
    ],
)
def test_versions(version: str, channel: str | None, release: tuple[int, int]) -> None:
    install = model_of(f"install: {{version: {version}}}")["install"]
    assert install["channel"] == channel
    assert (install["release"]["major"], install["release"]["minor"]) == release


def test_installation_has_what_was_left_out_as_nothing() -> None:
    install = model_of("install: {}")["install"]
    assert {key for key, value in install.items() if value is None} == {
        "release_image",
        "source",
        "proxy",
        "trust_bundle_file",
        "capabilities",
        "manifests_dir",
    }
    assert (install["image_mirrors"], install["fips"], install["cpu_partitioning"]) == ([], False, False)


def test_installation_by_plain_names() -> None:
    install = model_of(
        "install: {source: /srv/mirror/, fips: true, proxy: {http: 'http://[fd00::1]:3128', no_proxy: [.a]}, "
        "image_mirrors: [{source: quay.io/a, mirrors: ['m:5000/a', n]}], capabilities: {additional: [Console]}}"
    )["install"]
    assert (install["source"], install["fips"]) == ("/srv/mirror", True)
    assert install["proxy"] == {"http": "http://[fd00::1]:3128", "https": None, "no_proxy": [".a"]}
    assert install["image_mirrors"] == [{"source": "quay.io/a", "mirrors": ["m:5000/a", "n"]}]
    assert install["capabilities"] == {"baseline": "vCurrent", "additional": ["Console"]}


def test_installation_keeps_the_free_part_as_it_is() -> None:
    config = model_of("install: {config: {fips: true, networking: {mtu: 9000}, list: [1, 2.5, null, a]}}")["install"]
    assert config["config"] == {"fips": True, "networking": {"mtu": 9000}, "list": [1, 2.5, None, "a"]}


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("{}", "AlwaysOff"),
        ("install: {version: 4.20.3}", "LastState"),
        ("install: {version: 4.20.3}\nbmc: {power_restore: AlwaysOn}", "AlwaysOn"),
        ("bmc: {power_restore: LastState}", "LastState"),
    ],
)
def test_an_installed_cluster_comes_back_with_its_host(text: str, policy: str) -> None:
    assert model_of(text)["bmc"]["power_restore"] == policy


@pytest.mark.parametrize("section", ["machine_network", "bootstrap", "provisioning_network", "nodes", "bmc", "install"])
def test_a_key_with_nothing_after_it_is_left_out(section: str) -> None:
    assert model_of(f"{section}:") == model_of("")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("nodes: {workers: {count: '2'}}", "nodes: {workers: {count: 2}}"),
        ("bmc: {tls: 'False'}", "bmc: {tls: false}"),
        ("nodes: {workers: {memory: 8192MiB}}", "nodes: {workers: {memory: 8GiB}}"),
        ("nodes: {workers: {memory: 0.5GiB}}", "nodes: {workers: {memory: 512 MiB}}"),
        ("machine_network: {vips: {api: [192.168.126.7]}}", "machine_network: {vips: {api: 192.168.126.7}}"),
    ],
)
def test_two_ways_to_write_one_thing(written: str, meant: str) -> None:
    assert model_of(written) == model_of(meant)


def test_the_installer_looks_for_the_bridges_of_the_nodes() -> None:
    assert model_of("")["installer_bridges"] == ["baremetal"]
    assert model_of(PXE)["installer_bridges"] == ["baremetal", "provisioning"]
