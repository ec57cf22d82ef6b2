# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's signers of certificates, and when their own certificates end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import SECRETS, seconds_of

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client

NOT_AFTER = "auth.openshift.io/certificate-not-after"
TO_KUBELETS, OF_KUBELETS = "kube-apiserver-to-kubelet-signer", "csr-signer"
NAMESPACES = {
    TO_KUBELETS: "openshift-kube-apiserver-operator",
    OF_KUBELETS: "openshift-kube-controller-manager-operator",
}


def not_after(client: Client, signer: str) -> str:
    """As the cluster writes it; empty if it does not say. Of the Secret only this annotation leaves the cluster."""
    path = "{.metadata.annotations." + NOT_AFTER.replace(".", "\\.") + "}"
    words = ("get", SECRETS, signer, f"--namespace={NAMESPACES[signer]}", f"--output=jsonpath={path}")
    said = client.run(*words).strip()
    return said if seconds_of(said) else ""
