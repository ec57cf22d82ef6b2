"""Sphinx's configuration of the documentation site, which build.py makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "nometal.ipi"
project_copyright = "nometal.ipi contributors"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
html_theme = "furo"
html_title = "nometal.ipi"
html_show_sourcelink = False
nitpicky = True
# As GitHub has them.
myst_heading_anchors = 6

OF_ANSIBLE = "https://docs.ansible.com/ansible/latest"
PAGES_OF_ANSIBLE = {
    "action_plugins": "plugins/action.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}
MODULES_OF_ANSIBLE = "ansible_collections.ansible.builtin."


def page_of_ansible(label: str) -> str:
    if label.startswith(MODULES_OF_ANSIBLE):
        return f"collections/ansible/builtin/{label[len(MODULES_OF_ANSIBLE) :]}.html"
    return PAGES_OF_ANSIBLE.get(label, "")


def link_to_ansible(_app: Sphinx, _environment: Any, wanted: Any, content: nodes.TextElement) -> nodes.Node | None:
    """To the few pages of Ansible's documentation that antsibull-docs names; a build needs no network for them."""
    page = page_of_ansible(wanted["reftarget"])
    return nodes.reference("", "", content, refuri=f"{OF_ANSIBLE}/{page}", internal=False) if page else None


def setup(app: Sphinx) -> None:
    app.connect("missing-reference", link_to_ansible)
