# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs in the guests of a rehearsal: the first process of the stand-in bootstrap VM and of every node.

Nothing but Python's standard library and the program `ip`. Guests tell what they see; what it means is judged on the
host.
"""
