"""Where the work of a batch is done: processes of this machine, or the workers of a dask scheduler."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from texgen.batch.work import Job, Outcome, work
from texgen.errors import TexgenError, UsageError

GRACE = 3.0
"""Seconds that workers get to end the programs they have started."""


class Pool(Protocol):
    """What a batch needs of a pool."""

    generation: int
    """Jobs after which the workers are replaced; 0 for never."""
    remote: bool
    """True if workers may have another texgen than we."""

    def open(self, alone: bool) -> contextlib.AbstractContextManager[Executor]:
        """Workers; one of them if ``alone``."""
        ...

    def window(self) -> int:
        """How many jobs are on their way at once."""
        ...

    def send(self, executor: Executor, job: Job) -> Future[Any]:
        """Give a job to the workers."""
        ...

    def take(self, result: Any) -> list[Outcome]:
        """The outcomes out of what the future of a job gives."""
        ...

    def kill(self) -> None:
        """End the workers now."""
        ...

    def death(self, error: BaseException) -> bool:
        """True for the exception of a job whose worker has died."""
        ...

    def close(self) -> None:
        """Leave nothing behind."""
        ...


class Local:
    """Processes of this machine, started anew and not forked, replaced now and then so that memory stays flat.

    What they give goes through files: a process that is killed while it sends a long answer through the executor's pipe
    leaves half of it there, and the executor waits for the rest for ever.
    """

    remote = False

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._spool = tempfile.TemporaryDirectory(prefix="texgen-batch-")
        self.generation = 40 * jobs
        self._executor: ProcessPoolExecutor | None = None

    @contextlib.contextmanager
    def open(self, alone: bool) -> Iterator[Executor]:
        spawn = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(1 if alone else self.jobs, spawn, _begin, (os.getpid(),))
        self._executor = executor
        try:
            yield executor
        except BaseException:
            self.kill()
            executor.shutdown(wait=False, cancel_futures=True)
            raise
        executor.shutdown()

    def window(self) -> int:
        return 2 * self.jobs

    def send(self, executor: Executor, job: Job) -> Future[Any]:
        with _no_interrupt():  # processes start with SIGINT blocked: Ctrl-C is ours to handle, from the first moment on
            return executor.submit(_spooled, job, self._spool.name)

    def take(self, result: Any) -> list[Outcome]:
        path = Path(result)
        outcomes: list[Outcome] = pickle.loads(path.read_bytes())
        path.unlink()
        return outcomes

    def kill(self) -> None:
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        for process in processes:
            with contextlib.suppress(OSError, ValueError):
                process.terminate()
        end = time.monotonic() + GRACE
        for process in processes:
            with contextlib.suppress(OSError, ValueError, AssertionError):
                process.join(max(0.0, end - time.monotonic()))
                process.kill()

    def death(self, error: BaseException) -> bool:
        from concurrent.futures import BrokenExecutor

        return isinstance(error, BrokenExecutor)

    def close(self) -> None:
        self._spool.cleanup()


def _spooled(job: Job, folder: str) -> str:
    """Do a job in a worker; the name of the file that has its outcomes."""
    handle, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file:
        pickle.dump(work(job), file)
    return name


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: int) -> None:
    """The first thing in a worker: end with the parent, and take along what was started here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: _end(128 + number))
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    _end(1)


def _end(code: int) -> None:
    from texgen.render.engine import end_all

    end_all()  # the kept child of the DSL sees by itself that its parent is gone
    os._exit(code)


class Dask:
    """The workers of a dask scheduler. They write nothing: no file system needs to be shared, unless targets name files."""

    generation = 0
    remote = True

    def __init__(self, address: str, wait: float = 30.0) -> None:
        try:
            import distributed
            from distributed.comm.addressing import parse_host_port
        except ImportError:
            raise UsageError("--dask needs dask.distributed: run pip install '.[dask]'.") from None
        protocol, _, place = address.rpartition("://")
        try:
            if protocol in ("", "tcp", "tls"):  # a Client that fails to connect takes half a minute and does not end
                host, port = parse_host_port(place)
                socket.create_connection((host, port), wait).close()
            self._client: Any = distributed.Client(address, timeout=wait, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise TexgenError(f"There is no dask scheduler at {address} ({error}): start one with dask scheduler.") from None
        try:
            self._client.wait_for_workers(1, timeout=wait)
        except (OSError, TimeoutError):
            self._client.close()
            raise TexgenError(f"The dask scheduler at {address} has no worker: start one with dask worker {address}.") from None

    @contextlib.contextmanager
    def open(self, alone: bool) -> Iterator[Executor]:
        executor = self._client.get_executor(pure=False)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)

    def send(self, executor: Executor, job: Job) -> Future[Any]:
        return executor.submit(work, job)

    def take(self, result: Any) -> list[Outcome]:
        made: list[Outcome] = result
        return made

    def window(self) -> int:
        return max(8, 3 * int(sum(self._client.nthreads().values())))

    def kill(self) -> None:
        """Nothing: the workers are not ours; what is on its way is cancelled when the executor is closed."""

    def death(self, error: BaseException) -> bool:
        from distributed.scheduler import KilledWorker

        return isinstance(error, KilledWorker)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)
