# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is of ours in the directories that all labs of a host share."""

from __future__ import annotations

KNOWN = ("lab.json", "registered", "rehearsal.html", "rehearsal.json", ".*.new")
"""In that of one lab, /var/lib/nometal/labs/LAB."""
