"""A call to a server that can be given up: Flight has no way to leave a server that does not answer."""

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from penstock.errors import ServerUnavailableError

if TYPE_CHECKING:
    from penstock.client.channel import ServerChannel

T = TypeVar("T")


class CancellableCall(Generic[T]):
    """A call in a thread of its own that is given up when it is cancelled, or when the server does not answer.

        stream = CancellableCall(channel, open_stream, lambda stream: stream.cancel()).run(limit_s=30)

    The thread ends when the server answers after all, or the connection breaks; what a call returns after it was given
    up goes to `discard`.
    """

    def __init__(
        self, channel: "ServerChannel", call: Callable[[], T], discard: Callable[[T], None] | None = None
    ) -> None:
        self._channel, self._call, self._discard = channel, call, discard
        self._outcome: queue.SimpleQueue[Callable[[], T]] = queue.SimpleQueue()  # what to do, the first that comes
        self._lock = threading.Lock()  # of these:
        self._is_done = False
        self._is_given_up = False

    def run(self, limit_s: float | None = None, is_alive: Callable[[], bool] | None = None) -> T:
        """Wait for the result of the call, for its cancellation, or until `limit_s` have passed.

        With `is_alive`, which tells whether the server answers at all, the call may take as long as the server does.
        """
        began_s = time.monotonic()
        threading.Thread(target=self._make_call, name="penstock-followed-call", daemon=True).start()
        while True:
            try:
                return self._outcome.get(timeout=limit_s)()
            except queue.Empty:
                if is_alive is not None and is_alive():
                    continue
            with self._lock:
                self._is_given_up = not self._is_done
            if self._is_given_up:
                raise ServerUnavailableError(
                    f"{self._channel.name} does not answer: a call was given up after"
                    f" {time.monotonic() - began_s:.0f} s"
                )
            return self._outcome.get()()

    def cancel(self) -> None:
        """Give the call up."""
        with self._lock:
            self._is_given_up = not self._is_done
        self._outcome.put(self._raise_cancelled)

    def _make_call(self) -> None:
        """Make the call, and store its result or error."""
        try:
            answer = self._channel.call(self._call)
        except BaseException as error:  # noqa: BLE001 - raised where the call was made
            outcome = partial(_raise_error, error)
        else:
            outcome = partial(_return_answer, answer)
            with self._lock:
                self._is_done = not self._is_given_up
            if self._is_given_up and self._discard is not None:
                self._discard(answer)
                return
        self._outcome.put(outcome)

    def _raise_cancelled(self) -> T:
        """Raise the error of a call that was given up."""
        raise ServerUnavailableError(f"{self._channel.name} does not run the destination any more")


def _return_answer(answer: T) -> T:
    """Return an answer, as a function that can be called later."""
    return answer


def _raise_error(error: BaseException) -> NoReturn:
    """Raise an error, as an expression."""
    raise error
