#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: installer_tools
short_description: The OpenShift installer and oc
version_added: 0.1.0
description:
  - Gets C(oc) and the installer of a release from a client mirror, or from a directory that is laid out as one.
  - C(oc) comes from its tarball. So does C(openshift-install) from 4.16 on. Before that, and where the source has no
    such tarball, and for a release image of your own, C(oc) takes the installer out of the release image.
  - The tarballs must be listed in the source's C(sha256sum.txt), and have the checksum that is there.
  - A download that is interrupted goes on where it ended, also in the next run. There is never half a tool in its
    place.
  - Tools are kept by release, and all labs of a host share them. When a new release comes, older ones of its minor
    version go that were not wanted for a day and no installation on this host uses; two are kept at least.
  - Nothing is asked of any network for a release that is kept. A channel is looked up each time. If its source cannot
    be reached, the release that it was last is taken, and RV(note) says so.
  - Proxies are taken from O(environment) or the environment of the task, C(https_proxy), C(http_proxy) and C(no_proxy).
  - The tools must be for the host's own architecture, x86_64 or aarch64, for the nodes are its VMs. OKD's own releases
    are for x86_64 only, and OKD has no channels.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
options:
  version:
    description:
      - Release, such as V(4.20.3), or channel, such as V(stable-4.20) or V(latest-5.0), or a build of your own that
        O(source) has, such as V(5.0-alpha.2-66-g1966deb).
      - With O(release_image) it says what release that is, or of which minor version it is. An image that is no
        release (its installer calls itself V(unreleased-master-12272-g349feec), for instance) is treated as the
        release that is named here.
      - Required with O(state=present).
    type: str
  distribution:
    description: OpenShift or OKD.
    type: str
    choices: [ocp, okd]
    default: ocp
  release_image:
    description:
      - Release image from which the installer is taken, and which it will install, instead of the release's own.
      - An image that is named by a tag is taken once, and not looked at again.
    type: str
  fips:
    description:
      - Whether it is for a cluster in FIPS mode. From 4.16 on, the installer is then C(openshift-install-fips), taken
        out of the release image, and the host has to be in FIPS mode itself. It is kept apart from the usual one.
    type: bool
    default: false
  source:
    description:
      - Where the tools are, by http, https or file, or in a directory of the host. Below it there is a directory for
        each release and each channel, with C(release.txt), C(sha256sum.txt) and the tarballs.
      - Left out, it is Red Hat's mirror, or OKD's releases page. What the mirror does not have among its releases is
        looked for among its previews.
      - A login in the address, as in C(https://user:password@mirror.example.test/ocp), is for its server alone.
    type: str
  pull_secret:
    description:
      - Logins of registries, JSON with C(auths) in it. Needed where the installer has to be taken out of a release
        image.
    type: raw
  environment:
    description:
      - Environment variables for the downloads, proxies for instance, a mapping or JSON of one.
      - Other than those in C(environment) of the task, they are in no output and in no list of processes.
    type: raw
    default: {}
  path:
    description: Directory of the tools, which is made and removed. All labs of a host share it.
    type: path
    default: /var/cache/nometal/tools
  events:
    description: File that tells M(nometal.ipi.follow) how far the download is.
    type: path
  state:
    description: Whether there are to be these tools, or none at all.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Get the tools of the newest release of a channel
  nometal.ipi.installer_tools:
    version: stable-4.20
    pull_secret: "{{ lookup('ansible.builtin.file', '~/pull-secret.json') }}"
  register: tools

- name: Get them without a way to the internet
  nometal.ipi.installer_tools:
    version: 4.20.3
    source: /srv/mirror/ocp
    release_image: registry.lab.example.test:5000/ocp/release@sha256:{{ digest }}
    pull_secret: "{{ vault_pull_secret }}"

- name: Remove all tools
  nometal.ipi.installer_tools:
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [get tools]
version:
  description: The release that the installer installs, or that a build of your own is treated as.
  returned: with O(state=present)
  type: str
  sample: 4.20.3
release_image:
  description: The image that the installer installs, by digest if the installer or the source says so.
  returned: with O(state=present)
  type: str
directory:
  description: Directory of the programs, for the search path.
  returned: with O(state=present)
  type: str
  sample: /var/cache/nometal/tools/ocp-4.20.3/bin
oc:
  description: The program C(oc).
  returned: with O(state=present)
  type: str
  sample: /var/cache/nometal/tools/ocp-4.20.3/bin/oc
openshift_install:
  description:
    - The installer. Before 4.16 it is C(openshift-baremetal-install) beside it, to which this is a link, and with
      O(fips) C(openshift-install-fips).
  returned: with O(state=present)
  type: str
  sample: /var/cache/nometal/tools/ocp-4.20.3/bin/openshift-install
note:
  description: What was not as usual, and yet no failure; else empty.
  returned: with O(state=present)
  type: str
kept:
  description: With O(state=absent), what is not the collection's own in the directory, and stays.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: ["/var/cache/nometal/tools/notes.txt (not made by nometal.ipi)"]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.directory import USUAL_PATH, InstallerTools
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module

ARGUMENTS = {
    "version": {"type": "str"},
    "distribution": {"type": "str", "choices": ["ocp", "okd"], "default": "ocp"},
    "release_image": {"type": "str"},
    "fips": {"type": "bool", "default": False},
    "source": {"type": "str"},
    "pull_secret": {"type": "raw", "no_log": True},
    "environment": {"type": "raw", "default": {}, "no_log": True},
    "path": {"type": "path", "default": USUAL_PATH},
    "events": {"type": "path"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
RULES = {"required_if": [("state", "present", ["version"])]}


def main() -> None:
    run_module(ARGUMENTS, InstallerTools.run, **RULES)


if __name__ == "__main__":
    main()
