"""Pictures and sounds in prompts, with a real engine and tiny projectors."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from puna.config import EngineSettings
from puna.engine.assembly import assemble
from puna.engine.checkpoints import BEFORE_END
from puna.ipc.frames import Embed, Pooled
from puna.media import MEDIA, Media
from puna.speculation import Speculation
from puna.types import Sampling
from tests.engine.driver import Diary, Driver
from tests.engine.media import KINDS, MediaDriver, picture, sound, write_pair
from tests.tiny.projector import Vision

ONE, OTHER = picture(), picture(seed=1)
LONG = "This is a long story about a picture, and about what one could see in it on a clear day. " * 4
FREE = Sampling(temperature=0, ignore_eos=True)
FORMS = [(kind, layout) for kind in KINDS for layout in ("split", "unified")]


@pytest.fixture(scope="module", params=FORMS, ids=["-".join(form) for form in FORMS])
def driver(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[MediaDriver]:
    kind, layout = request.param
    made = MediaDriver(write_pair(tiny_folder, kind), n_ctx=1024, layout=layout)
    yield made
    assert made.warnings == []


def test_answers_are_like_the_librarys(driver: MediaDriver) -> None:
    for parts in (("Look: ", ONE, " What is it?"), ("Two: ", ONE, " and ", OTHER, "?")):
        driver.check(driver.ask_about(*parts, sampling=FREE), *parts)


def test_a_picture_at_the_end(driver: MediaDriver) -> None:
    first = driver.ask_about("At the end: ", OTHER, sampling=FREE)
    again = driver.ask_about("At the end: ", OTHER, sampling=FREE)
    fresh = driver.ask_about("At the end: ", OTHER, sampling=FREE, cache_prompt=False)
    assert first.tokens == again.tokens == fresh.tokens
    assert len(first.tokens) == 6


def test_a_picture_that_was_read_is_not_read_again(driver: MediaDriver) -> None:
    first = driver.ask_about(LONG, ONE, " And then?", sampling=FREE)
    encoded = driver.stats.media_encoded
    again = driver.ask_about(LONG, ONE, " And then?", sampling=FREE)
    n_prompt = first.cached + first.read
    assert (again.cached + again.read, again.tokens) == (n_prompt, first.tokens)
    assert again.read < 0.05 * n_prompt
    parts = (LONG, ONE, " Why?")
    question = driver.ask_about(*parts, sampling=FREE)
    driver.check(question, *parts)
    assert question.read <= 16 + BEFORE_END, "the text after it, and what a memory that cannot be cut keeps no end of"
    assert driver.stats.media_encoded == encoded


def test_an_encoding_is_kept(driver: MediaDriver) -> None:
    parts = ("Not from the cache: ", picture(seed=2))
    first = driver.ask_about(*parts, cache_prompt=False, sampling=FREE)
    encoded, hits = driver.stats.media_encoded, driver.stats.media_hits
    again = driver.ask_about(*parts, cache_prompt=False, sampling=FREE)
    assert (again.tokens, again.cached) == (first.tokens, 0)
    assert (driver.stats.media_encoded, driver.stats.media_hits) == (encoded, hits + 1)
    assert 0 < driver.stats.media_bytes <= driver.stats.media_limit


def test_other_pictures_and_none_do_not_mix(driver: MediaDriver) -> None:
    before = "The same beginning of some length, so that there is something to share"
    n_text = len(driver.tokens(before))
    for parts in ((before, ONE, "x"), (before, OTHER, "x"), (before, "x")):
        answer = driver.ask_about(*parts, sampling=FREE)
        driver.check(answer, *parts)
        assert answer.cached <= n_text + 14, "no more than the text before, and what begins a picture"
    for two in ((before, OTHER, ONE, "x"), (before, ONE, OTHER, "x")):
        driver.check(driver.ask_about(*two, sampling=FREE), *two)


def test_pictures_in_a_conversation(driver: MediaDriver) -> None:
    parts = ("Hello. ", ONE, " What is this?")
    answer = driver.ask_about(*parts, sampling=FREE)
    n_before = answer.cached + answer.read
    more, _ = driver.prompt("", " And this? ", OTHER, " Well?")
    tokens = (*driver.prompt(*parts)[0], *answer.tokens, *more[driver.vocab.add_bos :])
    second = driver.ask(tokens, media=(ONE, OTHER), max_tokens=6, sampling=FREE)
    assert second.cached >= n_before
    assert second.error == ""


def test_streams_go_on_beside(driver: MediaDriver) -> None:
    parts = ("Beside a stream: ", picture(seed=3), " and ", picture(seed=4), " " + LONG)
    stream = driver.submit("once upon a time", max_tokens=60, sampling=FREE)
    driver.run(until=lambda: len(stream.tokens) > 3)
    n_before = len(stream.tokens)
    answer = driver.submit_about(*parts, sampling=FREE)
    driver.run(until=lambda: bool(answer.tokens))
    assert len(stream.tokens) >= n_before + 3, "it got turns while the pictures were encoded and read"
    driver.run()
    driver.check(answer, *parts)
    assert stream.tokens == driver.ask("once upon a time", max_tokens=60, sampling=FREE).tokens


def test_aborted_while_it_is_encoded(driver: MediaDriver) -> None:
    parts = ("Abort this: ", picture(seed=5), " now")
    answer = driver.submit_about(*parts)
    driver.diary.phases.clear()
    driver.run(until=lambda: any(phase == "encode" and ids for phase, ids in driver.diary.phases))
    driver.abort(answer)
    driver.run()
    assert (answer.tokens, answer.end) == ([], "none")
    early = driver.submit_about(*parts)
    driver.abort(early)
    driver.run()
    assert early.end == "none"
    driver.check(driver.ask_about(*parts, sampling=FREE), *parts)


def test_aborted_in_the_middle_of_a_picture(driver: MediaDriver) -> None:
    parts = ("Stop in the middle: ", picture(seed=6), " of it")
    stream = driver.submit("a stream, so that pieces are small", max_tokens=400, sampling=FREE)
    driver.run(until=lambda: len(stream.tokens) > 2)
    answer = driver.submit_about(*parts)
    sequence = None
    for _ in range(60):
        driver.step()
        sequence = next((s for s in driver.engine._scheduler.running if s.runs), sequence)
        if sequence is not None and sequence.next_run is not None and sequence.n_done > sequence.next_run.start:
            break
    driver.abort(answer)
    driver.abort(stream)
    driver.run()
    driver.check(driver.ask_about(*parts, sampling=FREE), *parts)


def test_the_same_picture_from_many_at_once(driver: MediaDriver) -> None:
    shown = picture(seed=7)
    encoded = driver.stats.media_encoded
    answers = [driver.submit_about(LONG, shown, f" Question {i}?", sampling=FREE) for i in range(4)]
    driver.run()
    assert driver.stats.media_encoded == encoded + 1
    for i, answer in enumerate(answers):
        driver.check(answer, LONG, shown, f" Question {i}?")


def test_an_answer_goes_on_after_a_restart(driver: MediaDriver) -> None:
    parts = ("Go on with ", ONE, " please")
    whole = driver.ask_about(*parts, sampling=FREE, max_tokens=8)
    rest = driver.ask_about(*parts, sampling=FREE, max_tokens=8, produced=tuple(whole.tokens[:3]))
    assert rest.tokens == whole.tokens[3:]


def test_deterministic_answers(driver: MediaDriver) -> None:
    parts = ("Every time alike: ", OTHER, " yes")
    answers = [driver.ask_about(*parts, sampling=FREE, deterministic=True).tokens for _ in range(2)]
    assert answers[0] == answers[1] and len(answers[0]) == 6


def test_drafts_hold_no_vectors(driver: MediaDriver) -> None:
    parts = ("a b c ", ONE, " a b c ", ONE, " a b c")
    plain = driver.ask_about(*parts, sampling=FREE, max_tokens=24)
    drafted = driver.ask_about(*parts, sampling=FREE, max_tokens=24, speculation=Speculation(type="ngram-simple"))
    assert drafted.error == "" and len(drafted.tokens) == 24
    assert drafted.tokens[:1] == plain.tokens[:1]


def test_too_long_with_its_pictures(driver: MediaDriver) -> None:
    limit = driver.engine._arena.limit
    prompt = (*[5] * (limit - 3), MEDIA)
    answer = driver.ask(prompt, media=(ONE,))
    assert answer.end == "error"
    assert answer.lengths[1] == limit < answer.lengths[0]


def test_a_context_that_has_to_grow(tiny_folder: Path) -> None:
    for kind in KINDS:
        driver = MediaDriver(write_pair(tiny_folder, kind), n_ctx=2048)
        parts = (LONG, ONE, LONG * 5, OTHER, " and so on")
        driver.check(driver.ask_about(*parts, sampling=FREE), *parts)
        driver.check(driver.ask_about(*parts, sampling=FREE), *parts)
        assert driver.warnings == []


@pytest.mark.parametrize("kind", KINDS)
def test_from_disk(kind: Vision, tiny_folder: Path, tmp_path: Path) -> None:
    pair = write_pair(tiny_folder, kind)
    parts = (LONG, ONE, " What is it?")
    first = MediaDriver(pair, cache_dir=str(tmp_path))
    answer = first.ask_about(*parts, sampling=FREE)
    assert first.engine.close(10) == 0
    again = MediaDriver(pair, cache_dir=str(tmp_path))
    repeated = again.ask_about(*parts, sampling=FREE)
    assert (repeated.tokens, repeated.read <= BEFORE_END, again.stats.media_encoded) == (answer.tokens, True, 0)
    assert again.stats.disk_hits == 1
    assert first.warnings == again.warnings == []


def test_encodings_fall_out_of_a_small_cache(tiny_folder: Path) -> None:
    driver = MediaDriver(write_pair(tiny_folder, "mlp"), media_cache=10_000)
    shown = [picture(seed=seed) for seed in range(4)]
    for one in (*shown, *shown):
        driver.ask_about("Look: ", one, cache_prompt=False)
        assert driver.stats.media_bytes <= 10_000
    assert driver.stats.media_encoded == 8
    none = MediaDriver(write_pair(tiny_folder, "mlp"), media_cache=0)
    for _ in range(2):
        none.ask_about("Look: ", ONE, cache_prompt=False)
    assert (none.stats.media_encoded, none.stats.media_bytes) == (2, 0)


def test_what_must_be_read_at_once_has_to_fit(tiny_folder: Path) -> None:
    driver = MediaDriver(write_pair(tiny_folder, "gemma3"), n_ubatch=3)
    answer = driver.ask_about("Look: ", ONE)
    assert answer.end == "error" and "larger -ub" in answer.error
    assert driver.ask("text goes on", max_tokens=3, sampling=FREE).tokens


def test_a_context_shift_leaves_prompts_with_pictures_alone(tiny_folder: Path) -> None:
    driver = MediaDriver(write_pair(tiny_folder, "mlp"), n_ctx=128)
    answer = driver.ask_about("Look: ", ONE, context_shift=True, max_tokens=400, sampling=FREE)
    assert (answer.end, answer.truncated) == ("limit", False)
    assert len(answer.tokens) < 128


def test_pictures_and_sound_together(tiny_folder: Path, tmp_path: Path) -> None:
    driver = MediaDriver(write_pair(tmp_path, "mlp", audio=True))
    assert driver.facts.media is not None and (driver.facts.media.vision, driver.facts.media.audio_rate) == (True, 16000)
    answer = driver.ask_about("Hear ", sound(), " and see ", ONE, sampling=FREE)
    again = driver.ask_about("Hear ", sound(), " and see ", ONE, " and more", sampling=FREE)
    assert len(answer.tokens) == 6
    assert again.cached >= 30, "the sound, the picture and the text before"
    assert driver.stats.media_encoded == 2


def test_a_model_without_a_projector_refuses(tiny_llama: Path) -> None:
    driver = Driver(tiny_llama)
    answer = driver.submit((5, MEDIA, 6), media=(ONE,))
    driver.step()
    assert (answer.end, answer.error) == ("error", "the model takes text only")


class Vectors:
    """A worker that embeds, and what became of its inputs."""

    def __init__(self, kind: Vision, folder: Path, **settings: object) -> None:
        model, projector = write_pair(folder, kind)
        wish = {"model": str(model), "mmproj": str(projector), "n_threads": 1, "calibrate": False, "embeddings": True}
        chosen = EngineSettings(**{**wish, **settings})  # type: ignore[arg-type]  # passed on
        self.warnings: list[str] = []
        self.work, self.facts = assemble(
            chosen, safe_mode=False, recorder=Diary(), progress=lambda _done: None, warn=self.warnings.append
        )

    def embed(self, *inputs: tuple[tuple[int, ...], tuple[Media, ...]]) -> list[Pooled]:
        tokens = tuple(array("i", one).tobytes() for one, _ in inputs)
        self.work.submit(Embed(id=1, inputs=tokens, indices=tuple(range(len(inputs))), media=tuple(media for _, media in inputs)))
        found: list[Pooled] = []
        while not self.work.idle:
            found += self.work.step().pooled
        return found


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_become_embeddings(kind: Vision, tiny_folder: Path) -> None:
    vectors = Vectors(kind, tiny_folder, pooling="last")
    assert vectors.facts.media is not None and vectors.facts.media.pooled
    text = tuple(range(270, 290))
    asked = (((*text, MEDIA, 5), (ONE,)), ((*text, MEDIA, 5), (OTHER,)), ((*text, 5), ()), ((MEDIA,), (ONE,)))
    found = {pooled.indices[0]: pooled for pooled in vectors.embed(*asked) if not pooled.part}
    assert sorted(found) == [0, 1, 2, 3]
    assert all(np.isfinite(np.frombuffer(found[i].vectors[0], np.float32)).all() for i in range(4))
    assert len({found[i].vectors[0] for i in range(4)}) == 4
    assert (found[0].n_tokens > 21, found[2].n_tokens) == (True, 0)
    again = {pooled.indices[0]: pooled for pooled in vectors.embed(*asked) if not pooled.part}
    before, after = (np.frombuffer(one[0].vectors[0], np.float32) for one in (found, again))
    assert np.allclose(before, after, atol=1e-3)
    (refused,) = vectors.embed(((*[5] * (vectors.facts.n_ctx_pooled - 2), MEDIA), (ONE,)))
    assert refused.error_kind == "invalid" and "with its media" in refused.error
    assert vectors.warnings == []


def test_vectors_of_all_tokens_at_once_take_no_pictures(tiny_folder: Path) -> None:
    media = Vectors("mlp", tiny_folder, pooling="mean").facts.media
    assert media is not None and not media.pooled
