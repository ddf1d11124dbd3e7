"""A worker without an engine: speaks the frames, writes the black box, and dies as its scenario says.

Run as `fake_worker.py SCENARIO --channel FD --blackbox FD`.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from array import array
from collections import deque
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[3]))

from puna.ipc.blackbox import BlackBox, Phase
from puna.ipc.channel import WorkerChannel
from puna.ipc.frames import Abort, Embed, EndThinking, Failed, Load, Loading, Output, Pooled, Ready, Step, Submit, ToWorker
from puna.tuning import Tuning
from puna.types import EngineStats, ModelFacts, SlotState, Timings
from tests.unit.client.scenario import Killer, Scenario, token


def die(name: str) -> None:
    """End this process by a signal."""
    signal.signal(signal.SIGABRT, signal.SIG_DFL)
    os.kill(os.getpid(), getattr(signal, name))
    time.sleep(10)


class Running:
    """A request in a slot."""

    def __init__(self, submit: Submit) -> None:
        self.submit = submit
        self.n_read = 0
        self.n_produced = len(submit.produced)
        for index, produced in enumerate(submit.produced):
            assert produced == token(submit.generation.prompt, index), "resumed with a foreign token"

    @property
    def n_prompt(self) -> int:
        return len(self.submit.generation.prompt) + len(self.submit.produced)


class FakeWorker:
    """Reads frames on a thread, steps on the main one."""

    def __init__(self, scenario: Scenario, channel: WorkerChannel, box: BlackBox) -> None:
        self.scenario = scenario
        self.channel = channel
        self.box = box
        self.inbox: queue.Queue[ToWorker] = queue.Queue()
        self.waiting: deque[Running] = deque()
        self.running: list[Running] = []
        self.ended: list[tuple[int, int]] = []
        self.inputs: dict[int, deque[tuple[int, bytes]]] = {}
        """What is left to embed of each request."""
        self.safe_mode = False
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        while True:
            frame = self.channel.recv()
            if frame is None:
                if self.scenario.deaf:
                    return
                os._exit(0)
            self.inbox.put(frame)

    def count(self, name: str) -> int:
        """Count something over all lives; return how often it happened before."""
        path = Path(self.scenario.folder, name)
        before = path.stat().st_size if path.exists() else 0
        with path.open("a") as file:
            file.write("x")
        return before

    def load(self) -> None:
        scenario = self.scenario
        frame = self.inbox.get()
        assert isinstance(frame, Load)
        self.safe_mode = frame.safe_mode
        life = self.count("lives")
        print(f"life {life} begins", flush=True)
        self.channel.send(Loading(0.5))
        if scenario.hang_loading:
            time.sleep(600)
        if scenario.die_loading and not (scenario.sigill_unless_safe and self.safe_mode):
            print("about to die", file=sys.stderr, flush=True)
            die(scenario.die_loading)
        with Path(scenario.folder, "tunings").open("a") as file:
            file.write(f"{frame.settings.calibrate}:{frame.tuning and frame.tuning.n_threads}\n")
        if scenario.die_calibrating and frame.settings.calibrate:
            self.box.record("calibrate", ())
            die("SIGSEGV")
        if scenario.fail_loading and life >= scenario.fail_after:
            self.channel.send(Failed(scenario.fail_loading))
            sys.exit(1)
        self.box.record("idle", ())
        self.channel.send(Ready(self.facts(frame)))
        if life < scenario.die_idle:
            die("SIGKILL")

    def facts(self, load: Load) -> ModelFacts:
        return ModelFacts(
            path=load.settings.model,
            description="fake",
            architecture="fake",
            n_params=1,
            n_bytes=1,
            n_vocab=self.scenario.n_vocab,
            vocab_type=1,
            n_embd=1,
            n_layer=1,
            n_ctx_train=self.scenario.n_ctx,
            n_ctx=self.scenario.n_ctx,
            n_slots=self.scenario.n_slots,
            layout="split",
            flash_attention=False,
            n_threads=1,
            n_threads_batch=1,
            chat_template=None,
            metadata={},
            can_cut=True,
            has_decoder=True,
            engine=os.environ.get("GOMP_SPINCOUNT", ""),
            safe_mode=self.safe_mode,
            tuning=Tuning(layout="split", flash_short=True, flash_long=True, n_threads=7, n_threads_batch=7),
            pooling="mean",
            n_embd_out=1,
            n_ctx_pooled=self.scenario.n_ctx,
        )

    def run(self) -> None:
        self.load()
        while True:
            self.take(block=not self.running and not self.waiting and not self.ended and not self.inputs)
            while self.waiting and len(self.running) < self.scenario.n_slots:
                self.running.append(self.waiting.popleft())
            self.step()
            time.sleep(self.scenario.step_ms / 1000)

    def take(self, *, block: bool) -> None:
        while True:
            try:
                frame = self.inbox.get(block)
            except queue.Empty:
                return
            block = False
            if isinstance(frame, Submit):
                with Path(self.scenario.folder, "submits").open("a") as file:
                    file.write(f"{frame.generation.prompt[0]}:{len(frame.produced)}\n")
                self.waiting.append(Running(frame))
            elif isinstance(frame, Embed):
                with Path(self.scenario.folder, "embeds").open("a") as file:
                    file.write(f"{frame.id}:{len(frame.inputs)}\n")
                self.inputs[frame.id] = deque(zip(frame.indices, frame.inputs, strict=True))
            if isinstance(frame, EndThinking) or (isinstance(frame, Submit) and frame.end_thinking):
                with Path(self.scenario.folder, "endings").open("a") as file:
                    file.write(f"{frame.id}\n")
            if isinstance(frame, Abort):
                self.inputs.pop(frame.id, None)
                with Path(self.scenario.folder, "aborts").open("a") as file:
                    file.write(f"{frame.id}\n")
                self.running = [one for one in self.running if one.submit.id != frame.id]
                self.waiting = deque(one for one in self.waiting if one.submit.id != frame.id)

    def maybe_die(self, phase: Phase, killer: Killer | None, one: Running) -> None:
        if killer is None or killer.phase != phase:
            return
        # Reading a prompt again together with what was produced leads to the same place as producing it did.
        reading = one.n_read < one.n_prompt and not one.submit.produced
        name = f"killer{one.submit.generation.prompt[0]}"
        if killer.at == (-1 if reading else one.n_produced) and self.count(name) < killer.times:
            die(killer.signal)

    def embed(self) -> tuple[Pooled, ...]:
        """One input of each request: its vector is its tokens."""
        done: list[Pooled] = []
        self.box.record("decode", list(self.inputs))
        for id, left in list(self.inputs.items()):
            index, tokens = left.popleft()
            ids = array("i", tokens)
            killer = self.scenario.killers.get(ids[0])
            if killer is not None and self.count(f"killer{ids[0]}") < killer.times:
                die(killer.signal)
            done.append(Pooled(id, (index,), (array("f", ids).tobytes(),)))
            if not left:
                del self.inputs[id]
        return tuple(done)

    def step(self) -> None:
        scenario = self.scenario
        pooled = self.embed() if self.inputs else ()
        batch = list(self.running)
        self.box.record("decode", [one.submit.id for one in batch])
        if batch and scenario.sigill_unless_safe and not self.safe_mode:
            die("SIGILL")
        for one in batch:
            self.maybe_die("decode", scenario.killers.get(one.submit.generation.prompt[0]), one)
        self.box.decoded()
        outputs = [Output(id=id, end="limit", timings=Timings(prompt_n=5, predicted_n=n)) for id, n in self.ended]
        self.ended.clear()
        for one in batch:
            if one.n_read < one.n_prompt:
                one.n_read = min(one.n_prompt, one.n_read + scenario.prefill)
                if one.n_read < one.n_prompt:
                    continue
            for phase in ("constrain", "sample"):
                self.box.record(phase, (one.submit.id,))
                self.maybe_die(phase, scenario.killers.get(one.submit.generation.prompt[0]), one)
            outputs.append(self.produce(one))
        self.box.record("idle", ())
        if batch and scenario.garbage and not self.count("garbage"):
            self.channel._socket.sendall(b"\x03\x00\x00\x00xyz")
        self.channel.send(Step(tuple(outputs), EngineStats(n_running=len(self.running)), self.slots(), pooled))

    def produce(self, one: Running) -> Output:
        submit = one.submit
        if self.scenario.bad_grammar:
            self.running.remove(one)
            return Output(id=submit.id, end="error", error="the grammar is bad", error_kind="invalid")
        limit = submit.generation.max_tokens
        left = limit - one.n_produced if limit >= 0 else self.scenario.tokens_per_step
        n = min(left, self.scenario.tokens_per_step)
        tokens = tuple(token(submit.generation.prompt, one.n_produced + index) for index in range(n))
        first = one.n_produced == len(submit.produced)
        one.n_produced += n
        last = 0 <= submit.generation.max_tokens <= one.n_produced
        if last:
            self.running.remove(one)
            if self.scenario.end_frame_apart:
                self.ended.append((submit.id, one.n_produced))
        ends = last and not self.scenario.end_frame_apart
        timings = Timings(prompt_n=one.n_prompt, predicted_n=one.n_produced) if first or ends else None
        return Output(id=submit.id, tokens=tokens, end="limit" if ends else "none", slot=0, timings=timings)

    def slots(self) -> tuple[SlotState, ...]:
        return tuple(
            SlotState(id=id, busy=True, request=one.submit.id, n_prompt=one.n_prompt, n_prompt_done=one.n_read)
            for id, one in enumerate(self.running)
        )


def main() -> None:
    scenario = msgspec.json.decode(sys.argv[1], type=Scenario)
    fds = dict(zip(sys.argv[2::2], map(int, sys.argv[3::2]), strict=True))
    if scenario.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    FakeWorker(scenario, WorkerChannel(fds["--channel"]), BlackBox(fds["--blackbox"])).run()


if __name__ == "__main__":
    main()
