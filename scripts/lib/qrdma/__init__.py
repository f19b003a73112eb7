# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/run, scripts/test, scripts/vm and scripts/build share."""
