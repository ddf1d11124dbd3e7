"""The worker process: frames in, steps out. `python -m puna.engine.worker --channel FD --blackbox FD`."""

from __future__ import annotations

import argparse
import atexit
import os
import queue
import signal
import sys
import threading

from puna.engine.assembly import assemble
from puna.engine.workload import Workload
from puna.errors import StartupError
from puna.ipc.blackbox import BlackBox
from puna.ipc.channel import WorkerChannel
from puna.ipc.frames import Abort, Close, Embed, EndThinking, Failed, Load, Loading, Ready, SlotJob, Submit, ToWorker

TERM_SECONDS = 5.0
"""Seconds that resting prompts may take to the disk after SIGTERM."""


class Inbox:
    """Reads frames on a thread of its own, so that they are at hand between two steps.

    When the server goes away the whole process ends at once, whatever the engine is doing: nobody is left to want it.
    """

    def __init__(self, channel: WorkerChannel) -> None:
        self._channel = channel
        self._frames: queue.SimpleQueue[ToWorker] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, name="inbox", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, frame: ToWorker) -> None:
        """Add a frame that nobody sent. May be called from a signal handler."""
        self._frames.put(frame)

    def _read(self) -> None:
        while (frame := self._channel.recv()) is not None:
            self._frames.put(frame)
        os._exit(0)

    def take(self, *, wait: bool, timeout: float | None = None) -> list[ToWorker]:
        """The frames that have come; with `wait`, at least one, unless that takes more than `timeout` seconds."""
        frames: list[ToWorker] = []
        try:
            while True:
                frames.append(self._frames.get(block=wait and not frames, timeout=timeout))
        except queue.Empty:
            return frames


def warn(text: str) -> None:
    """Put a warning into the server's log, which reads this process' stderr."""
    sys.stderr.write(f"puna worker: {text}\n")
    sys.stderr.flush()


def load(channel: WorkerChannel, box: BlackBox) -> Workload | None:
    """Do what the first frame asks for and report it; None when the model could not be loaded."""
    frame = channel.recv()
    if not isinstance(frame, Load):
        return None
    box.record("load", ())
    reported = 0.0

    def progress(done: float) -> None:
        nonlocal reported
        if done - reported >= 0.05:
            reported = done
            channel.send(Loading(done))

    try:
        engine, facts = assemble(
            frame.settings, safe_mode=frame.safe_mode, recorder=box, progress=progress, warn=warn, known=frame.tuning
        )
    except StartupError as error:
        channel.send(Failed(error.message))
        return None
    channel.send(Ready(facts))
    return engine


def serve(engine: Workload, channel: WorkerChannel, inbox: Inbox) -> None:
    """The loop: take what has come, step, send. Ends when it is told to."""
    while True:
        frames = inbox.take(wait=engine.idle, timeout=engine.tidies_in)
        if not frames and engine.idle:
            engine.tidy()
            channel.send(engine.report())
            continue
        for frame in frames:
            if isinstance(frame, (Submit, Embed)):
                engine.submit(frame)
            elif isinstance(frame, Abort):
                engine.abort(frame)
            elif isinstance(frame, EndThinking):
                engine.end_thinking(frame)
            elif isinstance(frame, SlotJob):
                engine.add_slot_job(frame)
            elif isinstance(frame, Close):
                n_lost = engine.close(frame.seconds)
                if n_lost:
                    warn(f"{n_lost} resting prompts were not brought to the disk: {frame.seconds:g} s were too short")
                return
        channel.send(engine.report() if engine.idle else engine.step())
        for done in engine.take_slots_done():
            channel.send(done)


def end_by_signal(inbox: Inbox) -> None:
    """Let SIGTERM bring resting prompts to the disk before it ends the process, as it does without."""

    def terminated(_number: int, _frame: object) -> None:
        inbox.put(Close(TERM_SECONDS))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        atexit.register(os.kill, os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminated)


def main() -> int:
    parser = argparse.ArgumentParser(prog="puna.engine.worker")
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--blackbox", type=int, required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's business, which drains first
    channel = WorkerChannel(arguments.channel)
    box = BlackBox(arguments.blackbox)
    engine = load(channel, box)
    if engine is None:
        return 1
    inbox = Inbox(channel)
    inbox.start()
    if engine.keeps_on_disk:
        end_by_signal(inbox)
    try:
        serve(engine, channel, inbox)
        return 0
    except (BrokenPipeError, ConnectionResetError):
        return 0  # the server has gone


if __name__ == "__main__":
    sys.exit(main())
