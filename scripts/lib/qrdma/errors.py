# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception that a user is meant to read."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Callable

LOG_LINES_SHOWN = 20


class Failure(Exception):
    """A step that failed, in words for the person at the terminal.

    message says what went wrong, log names the file with the details (its last
    lines are shown), advice says what to do next.
    """

    def __init__(self, message: str, *, log: Path | None = None,
                 advice: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.log = log
        self.advice = advice

    def describe(self) -> str:
        """The whole text for the terminal."""
        lines = [f"qrdma: error: {self.message}"]
        if self.log is not None:
            lines += [f"  | {line}" for line in tail(self.log)]
            lines.append(f"  log: {self.log}")
        if self.advice is not None:
            lines.append(f"  what to do: {self.advice}")
        return "\n".join(lines)


def tail(path: Path, count: int = LOG_LINES_SHOWN) -> list[str]:
    """The last lines of a log; empty when there is none."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return []
    return text.splitlines()[-count:]


def run_main(main: Callable[[list[str]], int]) -> None:
    """Runs a command's main() and leaves with its status.

    Only bugs show a traceback; what a user can cause is a Failure or Ctrl-C.
    """
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except Failure as failure:
        sys.stdout.flush()
        print(failure.describe(), file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        print("\nqrdma: interrupted; the next run continues from here",
              file=sys.stderr)
        status = 130
    except BrokenPipeError:
        # The reader of our output went away (a pager, head): nothing to say.
        sys.stderr.close()
        status = 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        print(Failure(str(error), advice="make space or give access; the same command then "
                      "continues").describe(), file=sys.stderr)
        status = 1
    sys.exit(status)
