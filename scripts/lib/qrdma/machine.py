# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual machines that the flows and tests run in, as QEMU arguments."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from . import build_guest, build_kernel, build_qemu
from .trees import Trees

EXPORTER_BAR_SIZE = "64M"
CARD_PORT = "port-card"


@dataclass(frozen=True)
class Machine:
    """A machine: plain by default, with an IOMMU and an exporting device on demand."""

    name: str
    memory: str = "6G"
    processors: int = 2
    iommu: bool = False
    # The identifier is how the monitor finds the card.
    card: str = "qrdma,id=card,diagnostics=on,audit=on"
    # The page-size flow wants 1 GiB that is contiguous and aligned to its size,
    # which the kernel has only if it is set aside: 5 to 6 GiB, and 64 MiB before
    # it, because coherent DMA memory comes from the same place.
    kernel_arguments: tuple[str, ...] = ("hugepages=64", "cma=1088M@5056M")

    def with_timeline(self, file: Path) -> "Machine":
        """The same, and the card writes what becomes of its keys to a file."""
        # A comma ends an argument for QEMU; two are one.
        return replace(self, card=f"{self.card},timeline={str(file).replace(',', ',,')}")

    def arguments(self) -> list[str]:
        """The hardware, without kernel and consoles."""
        result = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                  "-m", self.memory, "-smp", str(self.processors),
                  # Memory that is not touched is not taken.
                  "-object", f"memory-backend-memfd,id=memory,size={self.memory},share=on"]
        machine = "q35,memory-backend=memory"
        if self.iommu:
            result += ["-machine", machine + ",kernel-irqchip=split",
                       "-device", "intel-iommu,intremap=on"]
        else:
            result += ["-machine", machine]
        result += accelerator(self.iommu)
        result += ["-device", f"pcie-root-port,id={CARD_PORT},chassis=1",
                   "-device", f"{self.card},bus={CARD_PORT}"]
        if self.iommu:
            result += ["-object",
                       f"memory-backend-ram,id=exporter-bar,size={EXPORTER_BAR_SIZE}",
                       "-device", "pcie-root-port,id=port-exporter,chassis=2",
                       "-device", "ivshmem-plain,memdev=exporter-bar,bus=port-exporter"]
        return result

    def command_line(self) -> str:
        """The kernel's arguments."""
        # The check of the timer fails now and then on a busy host.
        words = ["console=ttyS0", "panic=-1", "oops=panic", "loglevel=7", "no_timer_check",
                 *self.kernel_arguments]
        if self.iommu:
            # Strict: an access after an unmap faults at once.
            words += ["intel_iommu=on", "iommu.passthrough=0", "iommu.strict=1"]
        return " ".join(words)


PLAIN = Machine("plain")
# Behind an IOMMU, next to a device whose memory vfio-pci exports.
IOMMU = Machine("iommu", iommu=True)


def have_kvm() -> bool:
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def accelerator(peer_to_peer: bool) -> list[str]:
    """KVM where there is some, emulation elsewhere.

    The kernel allows PCI peer-to-peer across this machine's root complex only
    on processors that it knows to route it: EPYC is one.
    """
    if have_kvm():
        return ["-accel", "kvm", "-accel", "tcg", "-cpu", "EPYC" if peer_to_peer else "host"]
    return ["-accel", "tcg", "-cpu", "EPYC" if peer_to_peer else "max,la57=off"]


def qemu_command(machine: Machine, trees: Trees, initramfs: Path | None = None,
                 more_kernel_arguments: tuple[str, ...] = ()) -> list[str]:
    """QEMU with the machine, the kernel and the guest's image."""
    command_line = " ".join((machine.command_line(), *more_kernel_arguments))
    return [str(build_qemu.binary(trees)), *machine.arguments(),
            "-kernel", str(build_kernel.image(trees)),
            "-initrd", str(initramfs or build_guest.image(trees)),
            "-append", command_line]
