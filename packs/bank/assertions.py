"""What must be true at the end of a task.

An assertion sees the state (`now`, and `at_start` to compare it with), the calls that
ran, and the task with its slots; it never sees words. Each assertion about a change
also says what else may have changed: nothing. It must judge every candidate, also one
that stopped halfway, so it asserts that a row is there before it reads it.
"""

ASSERTION_CAPABILITIES = {
    # The state at the end, and nothing beside it.
    "assert_nothing_changed": {"category": "state"},
    "assert_money_moved": {"category": "state"},
    "assert_payee_added": {"category": "state"},
    "assert_added_payee_was_paid": {"category": "state"},
    "assert_standing_order_created": {"category": "state"},
    "assert_standing_order_cancelled": {"category": "state"},
    "assert_cards_blocked": {"category": "state"},
    "assert_cards_blocked_for_good": {"category": "state"},
    "assert_dispute_opened": {"category": "state"},
    "assert_largest_payment_disputed": {"category": "state"},
    "assert_alerts_set": {"category": "state"},
    # The way there: which calls ran.
    "assert_no_tool_used": {"trace": True, "category": "path"},
    "assert_no_call_repeated": {"trace": True, "category": "path"},
    "assert_previewed_first": {"trace": True, "category": "path"},
    # What single calls returned.
    "assert_refused_as_expected": {"trace": True, "category": "result"},
    "assert_accounts_listed": {"trace": True, "category": "result"},
    # What the last answer has to say was known when it was given.
    "assert_balances_known": {"category": "final_answer"},
    "assert_rates_known": {"category": "final_answer"},
    "assert_spending_known": {"category": "final_answer"},
    "assert_order_known": {"category": "final_answer"},
}

KEYS = {
    "accounts": "account_id",
    "cards": "ending",
    "payees": "payee_id",
    "standing_orders": "order_id",
    "transactions": "transaction_id",
    "transfers": "transfer_id",
    "disputes": "dispute_id",
    "alerts": "account_id",
    "rates": "currency",
}


def assert_nothing_changed(*, state, trace, task, ctx):
    _assert_changed_rows(state, set())


def assert_money_moved(*, state, trace, task, ctx):
    slots = task["slots"]
    source = slots["from_account_id"]
    before, after = _balances(state["at_start"]), _balances(state["now"])
    amount = slots.get("amount", before[source])
    transfer = _only_new(state, "transfers")
    _assert_transfer(transfer, source, _recipient(state, slots), amount, slots)
    changed = {("transfers", transfer["transfer_id"]), ("accounts", source)}
    assert after[source] == before[source] - amount, f"{source} has {after[source]}"
    target = transfer["to"].get("account_id")
    if target is not None:
        changed.add(("accounts", target))
        assert after[target] == before[target] + amount, f"{target} has {after[target]}"
    _assert_changed_rows(state, changed)


def assert_payee_added(*, state, trace, task, ctx):
    payee = _only_new(state, "payees")
    _assert_payee(payee, task["slots"])
    _assert_changed_rows(state, {("payees", payee["payee_id"])})


def assert_added_payee_was_paid(*, state, trace, task, ctx):
    slots = task["slots"]
    payee, transfer = _only_new(state, "payees"), _only_new(state, "transfers")
    source = slots["from_account_id"]
    _assert_payee(payee, slots)
    to = {"payee_id": payee["payee_id"]}
    _assert_transfer(transfer, source, to, slots["amount"], slots)
    expected = _balances(state["at_start"])[source] - slots["amount"]
    assert _balances(state["now"])[source] == expected, "another sum was taken"
    _assert_changed_rows(
        state,
        {
            ("payees", payee["payee_id"]),
            ("transfers", transfer["transfer_id"]),
            ("accounts", source),
        },
    )


def assert_standing_order_created(*, state, trace, task, ctx):
    slots = task["slots"]
    order = _only_new(state, "standing_orders")
    for field in ("from_account_id", "payee_id", "amount"):
        assert order[field] == slots[field], f"{field} is {order[field]}"
    schedule = {"every": slots.get("every", "month"), "day": slots["day"]}
    assert order["schedule"] == schedule, f"the schedule is {order['schedule']}"
    _assert_changed_rows(state, {("standing_orders", order["order_id"])})


def assert_standing_order_cancelled(*, state, trace, task, ctx):
    payee_id = _payee_id(state, task["slots"]["payee_name"])
    orders = state["at_start"]["standing_orders"]
    wanted = {o["order_id"] for o in orders if o["payee_id"] == payee_id}
    kept = {o["order_id"] for o in state["now"]["standing_orders"]}
    assert not wanted & kept, f"{wanted & kept} still runs"
    _assert_changed_rows(state, {("standing_orders", one) for one in wanted})


def assert_cards_blocked(*, state, trace, task, ctx):
    _assert_blocked(state, task["slots"], replacement=True)


def assert_cards_blocked_for_good(*, state, trace, task, ctx):
    _assert_blocked(state, task["slots"], replacement=False)


def assert_dispute_opened(*, state, trace, task, ctx):
    slots = task["slots"]
    names = ("transaction_id", "other_transaction_id")
    wanted = [slots[name] for name in names if name in slots]
    _assert_only_dispute(state, wanted, slots["reason"])


def assert_largest_payment_disputed(*, state, trace, task, ctx):
    slots = task["slots"]
    rows = _matching(state, slots["account_id"], category=slots["category"])
    largest = max(rows, key=lambda row: row["amount"])
    _assert_only_dispute(state, [largest["transaction_id"]], slots["reason"])


def assert_alerts_set(*, state, trace, task, ctx):
    slots = task["slots"]
    names = ("account_id", "other_account_id")
    wanted = [
        {
            "account_id": slots[name],
            "below": slots["below"],
            "channels": [slots["channel"]],
        }
        for name in names
        if name in slots
    ]
    alerts = state["now"]["alerts"]
    assert alerts == wanted, f"alerts are {alerts}"
    _assert_changed_rows(state, {("alerts", row["account_id"]) for row in wanted})


def assert_no_tool_used(*, state, trace, task, ctx):
    assert trace == [], f"{[call['tool'] for call in trace]} ran"


def assert_no_call_repeated(*, state, trace, task, ctx):
    made = [(call["tool"], call["arguments"]) for call in trace]
    repeated = [call for index, call in enumerate(made) if call in made[:index]]
    assert not repeated, f"made twice: {repeated}"


def assert_previewed_first(*, state, trace, task, ctx):
    confirmed = [call["arguments"].get("confirm", False) for call in trace]
    assert confirmed == [False, True], f"calls with confirm: {confirmed}"
    first, second = ({**c["arguments"], "confirm": True} for c in trace)
    assert first == second, "what was shown is not what was done"


def assert_refused_as_expected(*, state, trace, task, ctx):
    codes = [
        call["result"]["error"]["code"] for call in trace if "error" in call["result"]
    ]
    assert codes == task["edge_signatures"], f"refused with {codes}"


def assert_accounts_listed(*, state, trace, task, ctx):
    kind = task["slots"].get("kind")
    wanted = {
        row["account_id"]
        for row in state["now"]["accounts"]
        if (row["status"] == "open" if kind is None else row["kind"] == kind)
    }
    listed = {row["account_id"] for row in _last(trace, "list_accounts")["accounts"]}
    assert listed == wanted, f"listed {sorted(listed)}"


def assert_balances_known(*, state, trace, task, ctx):
    slots = task["slots"]
    names = ("account_id", "other_account_id")
    wanted = {slots[name] for name in names if name in slots}
    if "account_name" in slots:
        wanted.add(_by(state, "accounts", "name", slots["account_name"])["account_id"])
    if "payee_id" in slots:
        orders = _by(state, "standing_orders", "payee_id", slots["payee_id"])
        wanted.add(orders["from_account_id"])
    known = {
        call["result"]["account_id"]: call["result"]["balance"]
        for call in trace
        if call["tool"] == "get_balance" and "balance" in call["result"]
    }
    for account_id in wanted:
        balance = _balances(state["now"])[account_id]
        assert known.get(account_id) == balance, f"{account_id} is not known"


def assert_rates_known(*, state, trace, task, ctx):
    slots = task["slots"]
    names = ("currency", "other_currency")
    wanted = {slots[name] for name in names if name in slots}
    against = slots.get("against", "EUR")
    known = {
        call["result"]["currency"]
        for call in trace
        if call["tool"] == "get_exchange_rate"
        and call["result"].get("against") == against
    }
    assert wanted <= known, f"rates known of {sorted(known)}"


def assert_spending_known(*, state, trace, task, ctx):
    slots = task["slots"]
    categories = [slots[n] for n in ("category", "other_category") if n in slots]
    known = [
        call["result"].get("total")
        for call in trace
        if call["tool"] == "search_transactions"
    ]
    for category in categories or [None]:
        rows = _matching(
            state,
            slots["account_id"],
            category=category,
            least=slots.get("floor", 0),
            first_day=slots.get("first_day", ""),
            last_day=slots.get("last_day", "9999"),
        )
        total = sum(row["amount"] for row in rows)
        assert total in known, f"the sum {total} of {category} is not known"


def assert_order_known(*, state, trace, task, ctx):
    orders = _last(trace, "list_standing_orders")["standing_orders"]
    assert orders == state["now"]["standing_orders"], "not all orders are known"


def _assert_transfer(transfer, source, to, amount, slots):
    seen = [transfer[n] for n in ("from_account_id", "to", "amount", "reference")]
    wanted = [source, to, amount, slots.get("reference")]
    assert seen == wanted, f"the transfer is {seen}, not {wanted}"


def _assert_payee(payee, slots):
    if "iban" in slots:
        destination = {"iban": slots["iban"]}
    else:
        names = ("routing_number", "account_number")
        destination = {name: slots[name] for name in names}
    assert payee["name"] == slots["name"], f"the payee is {payee['name']}"
    assert payee["destination"] == destination, "the destination is wrong"


def _assert_blocked(state, slots, *, replacement):
    names = ("ending", "other_ending")
    endings = {slots[name] for name in names if name in slots}
    wanted = {
        "status": "blocked",
        "reason": slots["reason"],
        "replacement": replacement,
    }
    for card in state["now"]["cards"]:
        if card["ending"] in endings:
            seen = {field: card.get(field) for field in wanted}
            assert seen == wanted, f"card {card['ending']} is {seen}"
    _assert_changed_rows(state, {("cards", ending) for ending in endings})


def _assert_only_dispute(state, transaction_ids, reason):
    dispute = _only_new(state, "disputes")
    seen = (sorted(dispute["transaction_ids"]), dispute["reason"])
    assert seen == (sorted(transaction_ids), reason), f"the dispute is {seen}"
    _assert_changed_rows(state, {("disputes", dispute["dispute_id"])})


def _assert_changed_rows(state, wanted):
    """Fail if any other row was added, removed or edited, in any collection."""
    changed = set()
    for collection, key in KEYS.items():
        before = {row[key]: row for row in state["at_start"][collection]}
        after = {row[key]: row for row in state["now"][collection]}
        ids = before.keys() | after.keys()
        changed |= {
            (collection, one) for one in ids if before.get(one) != after.get(one)
        }
    assert changed == wanted, f"changed rows: {sorted(changed)}"


def _only_new(state, collection):
    """Return the one row that was added; anything but one fails."""
    before = state["at_start"][collection]
    added = [row for row in state["now"][collection] if row not in before]
    assert len(added) == 1, f"{len(added)} new rows in {collection}"
    return added[0]


def _last(trace, tool):
    """Return the last successful result of a tool; none fails."""
    found = [
        call["result"]
        for call in trace
        if call["tool"] == tool and "error" not in call["result"]
    ]
    assert found, f"{tool} gave no result"
    return found[-1]


def _by(state, collection, field, value):
    return next(row for row in state["at_start"][collection] if row[field] == value)


def _payee_id(state, name):
    return _by(state, "payees", "name", name)["payee_id"]


def _recipient(state, slots):
    if "to_account_id" in slots:
        return {"account_id": slots["to_account_id"]}
    if "payee_name" in slots:
        return {"payee_id": _payee_id(state, slots["payee_name"])}
    return {"payee_id": slots["payee_id"]}


def _balances(tables):
    return {row["account_id"]: row["balance"] for row in tables["accounts"]}


def _matching(state, account_id, *, category, least=0, first_day="", last_day="9999"):
    return [
        row
        for row in state["now"]["transactions"]
        if row["account_id"] == account_id
        and category in (None, row["category"])
        and row["amount"] >= least
        and first_day <= row["date"] <= last_day
    ]
