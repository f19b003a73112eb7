# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetches sources from Debian's archive through apt, with its signature checks.

apt works on a state of its own inside the cache: it reads suites that the host
does not use, and the host's configuration stays as it is. The mirror is the
host's own, and so is the rest of apt's configuration (proxies, policies).
"""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

from . import paths
from .errors import Failure
from .progress import Step

KEYRINGS = [Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
            Path("/usr/share/keyrings/debian-archive-keyring.gpg")]
SOURCE_SUITES = ["trixie", "trixie-backports", "forky", "sid"]
BINARY_SUITES = ["trixie", "trixie-backports", "bookworm-backports"]
NETWORK_ADVICE = ("check the network and the mirror in the host's apt configuration "
                  "(does 'apt-get update' work?)")


def host_mirror() -> str:
    """The address of the Debian archive in the host's own apt configuration."""
    listing = subprocess.run(
        ["apt-get", "indextargets", "--no-release-info", "--format",
         "$(REPO_URI) $(RELEASE) $(COMPONENT)"],
        capture_output=True, text=True, check=False).stdout
    codename = _codename()
    names = {codename, "stable", "oldstable", "testing", "unstable", "sid"}
    for line in listing.splitlines():
        uri, release, component = (line.split() + ["", "", ""])[:3]
        # Security and update archives have suites with longer names.
        if release in names and component == "main":
            return uri.rstrip("/")
    raise Failure(f"found no Debian archive ({codename}, main) in the host's apt configuration",
                  advice="qrdma fetches sources from Debian's archive; add it to /etc/apt "
                         "(Debian 12 or 13), or build from own trees with --qemu-tree "
                         "and --kernel-tree")


def _codename() -> str:
    try:
        text = Path("/etc/os-release").read_text()
    except OSError:
        return ""
    match = re.search(r'^VERSION_CODENAME="?([a-z]+)', text, re.MULTILINE)
    return match[1] if match else ""


class Archive:
    """apt with a private state; one a run, so that its lists are read once."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.folder = paths.cache() / "apt"
        self.environment = {"APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C"}
        self._configure()
        self.update_failed = False
        self._update()

    def _configure(self) -> None:
        keyring = next((path for path in KEYRINGS if path.exists()), None)
        if keyring is None:
            raise Failure("Debian's archive keys are missing",
                          advice="install debian-archive-keyring")
        for name in ("etc/sources.list.d", "etc/preferences.d",
                     "state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        mirror = host_mirror()
        lines = [f"{kind} [signed-by={keyring}] {mirror} {suite} main\n"
                 for kind, suites in (("deb-src", SOURCE_SUITES), ("deb", BINARY_SUITES))
                 for suite in suites]
        (self.folder / "etc/sources.list").write_text("".join(lines))
        settings = {
            "Dir::Etc::sourcelist": self.folder / "etc/sources.list",
            "Dir::Etc::sourceparts": self.folder / "etc/sources.list.d",
            "Dir::Etc::preferencesparts": self.folder / "etc/preferences.d",
            "Dir::State": self.folder / "state",
            "Dir::State::status": "/var/lib/dpkg/status",
            "Dir::Cache": self.folder / "cache",
            # The cache may be below a home folder that apt's own user cannot enter.
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
        }
        (self.folder / "apt.conf").write_text(
            "".join(f'{name} "{value}";\n' for name, value in settings.items()))

    def _update(self) -> None:
        """Reads the lists. A suite may be gone: what is missing shows later."""
        try:
            self.run("apt-get", "update", "-q", "-o", "APT::Update::Error-Mode=any")
        except Failure:
            self.update_failed = True

    def run(self, *command: str, directory: Path | None = None) -> None:
        self.step.run(command, directory=directory, environment=self.environment,
                      advice=NETWORK_ADVICE)

    def query(self, *command: str) -> str:
        result = subprocess.run(command, capture_output=True, text=True, check=False,
                                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **self.environment})
        return result.stdout

    def source_versions(self, package: str) -> list[str]:
        """Every version of a source package, newest first."""
        text = self.query("apt-cache", "showsrc", "--only-source", package)
        return newest_first(re.findall(r"^Version: (\S+)", text, re.MULTILINE))

    def binary_versions(self, package: str) -> list[str]:
        """Every downloadable version of a binary package, newest first."""
        text = self.query("apt-cache", "madison", package)
        found = [line.split("|") for line in text.splitlines()]
        return newest_first([fields[1].strip() for fields in found
                             if len(fields) == 3 and fields[2].rstrip().endswith("Packages")])

    def package_names(self, prefix: str) -> list[str]:
        """The names of the binary packages that begin with prefix."""
        return self.query("apt-cache", "pkgnames", prefix).split()

    def fetch_source(self, package: str, version: str, folder: Path, *,
                     tar_only: bool = False) -> None:
        """Downloads a source package into folder; apt checks it against the signed index."""
        only = ["--tar-only"] if tar_only else []
        self.run("apt-get", "source", "-q", "--download-only", *only,
                 f"{package}={version}", directory=folder)

    def fetch_binary(self, package: str, version: str, folder: Path) -> Path:
        """Downloads a binary package into folder; apt checks it against the signed index."""
        self.run("apt-get", "download", "-q", f"{package}={version}", directory=folder)
        return self._single(folder.glob(f"{package}_*.deb"), package)

    @staticmethod
    def _single(found, package: str) -> Path:
        files = sorted(found, key=lambda path: path.stat().st_mtime)
        if not files:
            raise Failure(f"apt-get said that it fetched {package}, but there is no file")
        return files[-1]

    def not_found(self, what: str) -> Failure:
        """What to say when the archive does not have it."""
        if self.update_failed:
            return Failure(f"could not read Debian's package lists, so found no {what}",
                           log=self.step.log, advice=NETWORK_ADVICE)
        return Failure(f"Debian's archive has no {what}", log=self.step.log,
                       advice="give an own tree with --qemu-tree or --kernel-tree")


def is_newer(one: str, other: str) -> bool:
    """Whether Debian version one is later than other."""
    return subprocess.run(["dpkg", "--compare-versions", one, "gt", other],
                          check=False).returncode == 0


def newest_first(versions: list[str]) -> list[str]:
    """Sorted by Debian's rules, without duplicates."""
    order = functools.cmp_to_key(
        lambda one, other: 0 if one == other else (1 if is_newer(one, other) else -1))
    return sorted(set(versions), key=order, reverse=True)


def upstream(version: str) -> str:
    """The upstream part of a Debian version: 1:10.0.13+ds-0+deb13u1 is 10.0.13."""
    bare = version.split(":", 1)[-1].rsplit("-", 1)[0]
    return re.split(r"[+~]", bare)[0]
