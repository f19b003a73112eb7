# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program in the guest may ask of its host: see guest-driver/tests/lib/host.h."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from .machine import CARD_PORT
from .monitor import Monitor, MonitorError

if TYPE_CHECKING:
    from .guest import Session

CARD = "card"
PLUG_SECONDS = 60
MIGRATION_SECONDS = 300
# A guest that is emulated beside its traffic dirties memory as fast as it is sent, so
# it may be stopped for as long as it takes: what is tested is not how long that is.
MIGRATION_PARAMETERS = {"max-bandwidth": 1 << 34, "downtime-limit": 60_000}


class HostError(Exception):
    """It cannot be done, for this reason."""


def unplug(session: Session) -> None:
    """The guest is asked to let go of the card; it does so later."""
    session.monitor.execute("device_del", {"id": CARD})


def plug(session: Session) -> None:
    """A new card like the first, once that has gone."""
    deadline = time.monotonic() + PLUG_SECONDS
    while any(device["name"] == CARD for device in
              session.monitor.execute("qom-list", {"path": "/machine/peripheral"})):
        if time.monotonic() > deadline:
            raise HostError(f"the card is still there after {PLUG_SECONDS} seconds")
        time.sleep(0.1)
    session.monitor.execute("device_add", device_properties(session.machine.card))


def device_properties(card: str) -> dict[str, object]:
    """A -device argument as device_add takes it. Values are words and switches."""
    driver, *properties = card.split(",")
    result: dict[str, object] = {"driver": driver, "bus": CARD_PORT}
    for entry in properties:
        name, _, value = entry.partition("=")
        result[name] = {"on": True, "off": False}.get(value, value)
    return result


def migrate(session: Session) -> None:
    """Moves the machine into another QEMU, while it runs."""
    target = session.start("-incoming", "defer")
    try:
        with tempfile.TemporaryDirectory() as folder:
            send(session.monitor, target.monitor, f"unix:{Path(folder) / 'migration'}")
        session.switch_over(target)
    except (HostError, MonitorError):
        target.end()
        raise


def send(source: Monitor, target: Monitor, uri: str) -> None:
    """Until the machine runs at the target."""
    for monitor in (target, source):
        monitor.execute("migrate-set-parameters", MIGRATION_PARAMETERS)
    target.execute("migrate-incoming", {"uri": uri})
    source.execute("migrate", {"uri": uri})
    wait_for_migration(source)
    wait_for_migration(target)


def wait_for_migration(monitor: Monitor) -> None:
    deadline = time.monotonic() + MIGRATION_SECONDS
    while True:
        answer = monitor.execute("query-migrate", {})
        if answer.get("status") == "completed":
            return
        if answer.get("status") in ("failed", "cancelled"):
            raise HostError(f"migration {answer['status']}: {answer.get('error-desc', '')}")
        if time.monotonic() > deadline:
            raise HostError(f"migration is {answer.get('status')} "
                            f"after {MIGRATION_SECONDS} seconds")
        time.sleep(0.1)


DEEDS: dict[str, Callable[[Session], None]] = {
    "unplug": unplug, "plug": plug, "migrate": migrate,
}


def answer(session: Session, wish: str) -> str:
    """Does what is asked; "done", or why it is not."""
    deed = DEEDS.get(wish)
    if deed is None:
        return f"there is no {wish}, but {', '.join(DEEDS)}"
    try:
        deed(session)
    except (HostError, MonitorError) as error:
        return " ".join(str(error).split())
    return "done"
