"""What a mood does to a call: the ways in which an oracle can go wrong."""

import os
import time


def of(arguments):
    """Return (mood, detail) of a call, `mood` alone or `mood:detail`."""
    mood, _, detail = arguments.get("mood", "calm").partition(":")
    return mood, detail


def act(mood, detail):
    """Break the process, or return the result that replaces the tool's own."""
    if mood == "hang":
        while True:
            pass
    if mood == "sleep":
        time.sleep(3600)
    if mood == "raise":
        raise RuntimeError("the backend broke")
    if mood == "count_and_die":
        with open(detail, "a", encoding="utf-8") as stream:
            stream.write("sent\n")
        os._exit(1)
    if mood == "list":
        return [1, 2]
    if mood == "rejected":
        return {"error": {"code": "not_found", "id": "BK-100"}}
    if mood == "empty_error":
        return {"error": {}}
    if mood == "null_error":
        return {"error": None, "book_id": "BK-100"}
    return None
