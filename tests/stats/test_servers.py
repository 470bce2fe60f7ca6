"""Responses by what their server told, bounded."""

from harness.stats.servers import MOST_NAMED, ServedBy, Servers


def test_most_frequent_server_comes_first():
    servers = Servers()
    for server in ("b", "a", "b", None):
        servers.add(server, "m")

    assert servers.result() == (
        ServedBy("b", "m", 2, is_rest=False),
        ServedBy(None, "m", 1, is_rest=False),
        ServedBy("a", "m", 1, is_rest=False),
    )


def test_nobody_answered():
    assert Servers().result() == ()


def test_endpoint_with_a_new_name_for_every_response_ends_in_one_entry():
    servers = Servers()
    for number in range(MOST_NAMED + 7):
        servers.add(f"s{number}", None)
    servers.add("s0", None)

    result = servers.result()

    assert len(result) == MOST_NAMED + 1
    assert result[0] == ServedBy("s0", None, 2, is_rest=False)
    assert result[-1] == ServedBy(None, None, 7, is_rest=True)
