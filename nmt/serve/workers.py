"""The threads of an engine: they take lines from its queue until that is closed and empty."""

import logging
import threading
import time
from collections.abc import Iterator

from nmt.errors import UserError
from nmt.serve.engine import Continuous, Engine, Session
from nmt.serve.jobs import Call, Job, Jobs

log = logging.getLogger(__name__)


class Workers:
    """An engine at work."""

    def __init__(self, engine: Engine, jobs: Jobs, gather: float) -> None:
        """`gather`: seconds that an idle engine waits for more lines to search together."""
        self.engine, self.jobs, self.gather = engine, jobs, gather
        self.live = 0  # lines in hand
        self.lock = threading.Lock()
        self.threads = [
            threading.Thread(target=self.run, name=f"engine-{number}", daemon=True)
            for number in range(engine.workers)
        ]
        for thread in self.threads:
            thread.start()

    def run(self) -> None:
        """What a thread does."""
        if isinstance(self.engine, Continuous):
            Together(self, self.engine).run()
        else:
            while job := self.jobs.take():
                with self.in_hand():
                    if isinstance(job, Call):
                        job.run()
                    else:
                        self.alone(job)

    def alone(self, job: Job) -> None:
        """Translate one line."""
        try:
            job.answer.set_result(self.engine.translate(job.line, job.options, job.stop))
        except Exception as error:
            job.answer.set_exception(error)

    def count(self, more: int) -> None:
        with self.lock:
            self.live += more

    def in_hand(self) -> "InHand":
        return InHand(self)

    def join(self, seconds: float | None = None) -> None:
        """Wait until all is done, at most so many seconds; None: for ever."""
        end = None if seconds is None else time.monotonic() + seconds
        for thread in self.threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))


class InHand:
    """`with workers.in_hand():` one more line is being worked on."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

    def __enter__(self) -> None:
        self.workers.count(1)

    def __exit__(self, *error: object) -> None:
        self.workers.count(-1)


class Together:
    """One thread that translates many lines together: those that come while others are in search join
    them."""

    def __init__(self, workers: Workers, engine: Continuous) -> None:
        self.workers, self.engine, self.jobs = workers, engine, workers.jobs
        self.session: Session = engine.session()
        self.live: set[Job] = set()

    def run(self) -> None:
        while self.fill():
            try:
                for job, found in self.session.step():
                    assert isinstance(job, Job)
                    self.leave(job)
                    if isinstance(found, UserError):
                        job.answer.set_exception(found)
                    else:
                        job.answer.set_result(found)
            except Exception as error:
                self.fail(error)
            for job in [job for job in self.live if job.stop.is_set()]:
                self.session.cancel(job)
                self.leave(job)
                job.answer.set_exception(InterruptedError())

    def fill(self) -> bool:
        """Add the lines that there is room for. False when all is done."""
        while not self.live:
            job = self.jobs.take()
            if job is None:
                return False
            self.add(job)
            end = time.monotonic() + self.workers.gather
            for other in self.coming(end):
                self.add(other)
        for other in self.coming(0):
            self.add(other)
        return True

    def coming(self, end: float) -> Iterator[Job | Call]:
        """Lines from the queue while there is room, until it is `end`."""
        while self.session.wants():
            job = self.jobs.take(max(0.0, end - time.monotonic()))
            if job is None:
                return
            yield job

    def add(self, job: Job | Call) -> None:
        if isinstance(job, Call):
            with self.workers.in_hand():
                job.run()
            return
        try:
            self.session.add(job, job.line, job.options)
        except Exception as error:
            job.answer.set_exception(error)
            return
        self.live.add(job)
        self.workers.count(1)

    def leave(self, job: Job) -> None:
        self.live.remove(job)
        self.workers.count(-1)

    def fail(self, error: Exception) -> None:
        """The search has broken: all lines in it fail, and a new one begins."""
        if not isinstance(error, UserError):
            log.error("the search failed, with %d lines in it: %s", len(self.live), error)
        for job in list(self.live):
            self.leave(job)
            job.answer.set_exception(error)
        self.session = self.engine.session()
