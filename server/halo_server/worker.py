"""Runs what requests left for later: one job after another, in one thread, each by the handler of its kind.

It knows nothing about memory: a handler does the work, and finishes its job in the transaction that writes the outcome. What
fails is put off and tried again; the log and the metrics say so by codes. This changes when jobs are run in another way.
"""

import threading
from collections.abc import Callable, Mapping

from prometheus_client import Counter

from halo_server.domain import Clock, Job, NewId
from halo_server.errors import HaloError, ProviderFailed
from halo_server.log import get_logger
from halo_server.store import jobs
from halo_server.store.store import Store

__all__ = ["Handler", "Worker"]

Handler = Callable[[Job], None]
"""Does a job outside of any transaction, then writes the outcome and calls `jobs.finish` in one. Runs at least once."""

_log = get_logger()

_IDLE_S = 1.0  # between two looks: jobs that were put off become due without a sign
_GRACE_S = 5.0


class Worker:
    """A thread that begins with the first job.

    Args:
        handlers: Kind of job -> its handler; jobs of other kinds stay for others.
        jitter: A number in [0, 1), at random.
    """

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
        clock: Clock,
        new_id: NewId,
        jitter: Callable[[], float],
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._clock = clock
        self._new_id = new_id
        self._jitter = jitter
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._started = False
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._job: Job | None = None
        self.failures = Counter(
            "halo_job_failures", "Attempts at jobs that failed.", ["kind", "code"], registry=None
        )

    def start(self) -> None:
        """From now on jobs are run; what an earlier process left is taken up."""
        with self._lock:
            self._started = True
        if self.count()[0]:
            self.wake()

    def wake(self) -> None:
        """Say that there may be a job. Before `start` and after `stop` nobody is there to hear it."""
        with self._lock:
            if self._started and not self._thread and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="halo-worker", daemon=True)
                self._thread.start()
        self._woken.set()

    def stop(self) -> None:
        """Let the job under way end; if it takes too long, give it back for the next process to take at once."""
        self._stopping.set()
        self._woken.set()
        with self._lock:
            thread, self._started = self._thread, False
        if thread is None:
            return
        thread.join(_GRACE_S)
        job = self._job
        if thread.is_alive() and job:
            self._store.write(lambda tx: jobs.let_go(tx, job))

    def drain(self) -> int:
        """Run all that is due in the caller's thread; return how many jobs that were."""
        done = 0
        while self._step():
            done += 1
        return done

    def count(self) -> tuple[int, int]:
        """Return how many jobs wait or run, and how many are dead."""
        return self._store.read(jobs.count)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            if not self._attempt():
                self._woken.wait(_IDLE_S)

    def _attempt(self) -> bool:
        try:
            return self._step()
        except HaloError as error:  # the store does not answer now
            _log.warning("jobs wait", code=error.code)
            return False

    def _step(self) -> bool:
        """Run the longest due job; return whether there was one."""
        kinds = self._handlers.keys()
        if not self._store.read(lambda tx: jobs.is_due(tx, kinds, self._clock())):
            return False
        lease = self._new_id()
        job = self._job = self._store.write(lambda tx: jobs.take(tx, kinds, lease, self._clock()))
        if job is None:
            return False
        try:
            self._handlers[job.kind](job)
        except ProviderFailed as error:
            self._fail(job, error.code, final=error.final)
        except HaloError as error:
            self._fail(job, error.code.lower())
        except Exception as error:  # noqa: BLE001 (a fault of one job must not end the others)
            # Its text may quote what somebody said; its name and place do not.
            _log.error("a job's handler is at fault", kind=job.kind, error=type(error).__name__)
            self._fail(job, "internal")
        finally:
            self._job = None
        return True

    def _fail(self, job: Job, code: str, *, final: bool = False) -> None:
        self.failures.labels(job.kind, code).inc()
        _log.warning("job failed", kind=job.kind, code=code, attempts=job.attempts)
        jitter = self._jitter()
        self._store.write(lambda tx: jobs.fail(tx, job, code, self._clock(), jitter=jitter, final=final))
