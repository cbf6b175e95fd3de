"""Run a program that may read some folders, write others, and reach no network (Linux's Landlock, kernel 5.13 and later).

TeX's own ``openin_any`` and ``openout_any`` stop ``\\input`` and ``\\openout``, but not pdfTeX's ``\\pdfobj file`` or Lua's
``io.open``; the kernel stops those too. Run as a script, by file name and with the standard library alone:
``python -I -S confine.py READ WRITE PROGRAM ARGUMENT ...``, READ and WRITE being lists of paths.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys
from functools import cache

CREATE, ADD, RESTRICT = 444, 445, 446
"""Numbers of the system calls, the same on every architecture that CUDA knows."""
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REFER, TRUNCATE, IOCTL = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 13, 1 << 14, 1 << 15
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
READING = EXECUTE | READ_FILE | READ_DIR
NO_NEW_PRIVILEGES = 38


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scope", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("folder", ctypes.c_int32)]


@cache
def version() -> int:
    """The kernel's version of Landlock, 0 where it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(CREATE, None, ctypes.c_size_t(0), 1)))


def restrict(reads: list[str], writes: list[str]) -> None:
    """Confine this process and all that it starts, for good. Paths that do not exist are left out. Raises OSError."""
    abi = version()
    every = (1 << (13 + (abi >= 2) + (abi >= 3) + (abi >= 5))) - 1
    libc = ctypes.CDLL(None, use_errno=True)
    rules = _Ruleset(every, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _checked(libc.syscall(CREATE, ctypes.byref(rules), ctypes.c_size_t(size), 0))
    for paths, access in ((reads, READING), (writes, every)):
        for path in paths:
            try:
                folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            allowed = access & every if stat.S_ISDIR(os.fstat(folder).st_mode) else access & every & OF_A_FILE
            rule = _Beneath(allowed, folder)
            _checked(libc.syscall(ADD, ruleset, 1, ctypes.byref(rule), 0))
            os.close(folder)
    _checked(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(libc.syscall(RESTRICT, ruleset, 0))
    os.close(ruleset)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def command(program: str, arguments: list[str], reads: list[str], writes: list[str]) -> list[str]:
    """The command that runs ``program`` confined; as it is where the kernel cannot."""
    if not version():
        return [program, *arguments]
    lists = [os.pathsep.join(reads), os.pathsep.join(writes)]
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), *lists, program, *arguments]


if __name__ == "__main__":
    restrict(sys.argv[1].split(os.pathsep), sys.argv[2].split(os.pathsep))
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what it starts would too
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execv(sys.argv[3], sys.argv[3:])
