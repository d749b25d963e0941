"""The thread that writes beside the decisions: it outlives errors, and loses no call to wake it."""

import threading

from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.write.writing_thread import WritingThread


def test_it_goes_on_after_errors_and_tells_of_those_alone_that_should_not_happen():
    answers, failed, wrote = [NotLeaderError("another leads"), ValueError("a fault"), None], [], threading.Event()

    def write():
        thread.wake()
        answer = answers.pop(0) if answers else None
        if answer is not None:
            raise answer
        wrote.set()

    thread = WritingThread("writes", write, failed.append, again=0.0)
    thread.start()
    thread.wake()
    assert wrote.wait(30)
    thread.stop(30)
    assert [str(error) for error in failed] == ["a fault"]
    assert thread.is_stopped


def test_woken_while_it_writes_it_writes_once_more():
    begun, may_go_on, rounds, again = threading.Event(), threading.Event(), [], threading.Event()

    def write():
        rounds.append(len(rounds))
        begun.set()
        assert may_go_on.wait(30)
        if len(rounds) == 2:
            again.set()

    failed = []
    thread = WritingThread("writes", write, failed.append)
    thread.start()
    thread.wake()
    assert begun.wait(30)
    thread.wake()
    may_go_on.set()
    assert again.wait(30)
    thread.stop(30)
    assert rounds == [0, 1]
    assert failed == []


def test_it_is_stopped_without_having_begun_and_while_it_rests():
    idle = WritingThread("idle", lambda: None, lambda _: None)
    idle.stop()
    rests = threading.Event()

    def write():
        rests.set()
        thread.rest(600)

    thread = WritingThread("rests", write, lambda _: None)
    thread.start()
    thread.wake()
    assert rests.wait(30)
    thread.stop(30)
    assert not thread._thread.is_alive()
