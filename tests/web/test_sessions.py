"""Sessions end by themselves: after so long, and after so long without a request."""

from tenure.web.login import IDLE_SECONDS, SESSION_SECONDS, WebSession


def test_a_session_ends_by_itself():
    session = WebSession("token", begun=0.0, asked=0.0)
    assert not session.is_over(IDLE_SECONDS)
    assert session.is_over(IDLE_SECONDS + 1)
    session.asked = SESSION_SECONDS
    assert not session.is_over(SESSION_SECONDS)
    assert session.is_over(SESSION_SECONDS + 1)
