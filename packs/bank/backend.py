"""The bank itself: thirteen tools over the rows of one signed-in customer.

The state is a copy of the fixtures, kept beside the fixtures as they were, so that
assertions can say what a task changed and what it left alone. Time comes from
`ctx.clock` and new ids from `ctx.seed`, so the same task gives the same results. A
refusal is a result with an error code; any other exception means a broken bank.
"""

import copy
import hashlib
from datetime import timedelta

TRANSFER_LIMIT = 5000
KEYS = {
    "accounts": "account_id",
    "cards": "ending",
    "payees": "payee_id",
    "standing_orders": "order_id",
    "transactions": "transaction_id",
    "transfers": "transfer_id",
    "disputes": "dispute_id",
}

_now = {}
_at_start = {}


class RefusalError(Exception):
    """The bank says no, and why."""

    def __init__(self, code, field):
        self.code = code
        self.field = field


def list_tools():
    return list(_TOOLS)


def reset(*, ctx, fixtures=None):
    for state in (_now, _at_start):
        state.clear()
        state.update(copy.deepcopy(fixtures))


def call_tool(name, arguments, *, ctx):
    try:
        return copy.deepcopy(_TOOLS[name](ctx, **arguments))
    except RefusalError as refusal:
        return {"error": {"code": refusal.code, "field": refusal.field}}


def get_state():
    return copy.deepcopy({"now": _now, "at_start": _at_start})


def _list_accounts(ctx, name=None, kind=None, include_frozen=False):
    shown = ("account_id", "name", "kind", "currency", "status")
    found = [
        {field: account[field] for field in shown}
        for account in _now["accounts"]
        if name in (None, account["name"])
        and kind in (None, account["kind"])
        and (include_frozen or account["status"] == "open")
    ]
    if not found:
        raise RefusalError("account_not_found", "name")
    return {"accounts": found}


def _get_balance(ctx, account_id):
    account = _row("accounts", account_id, "account_id")
    shown = ("account_id", "balance", "currency", "status")
    return {field: account[field] for field in shown}


def _search_transactions(ctx, account_id, filters, order="newest", limit=10):
    _row("accounts", account_id, "account_id")
    period = filters.get("period", {"from": "", "to": "9999"})
    found = [
        row
        for row in _now["transactions"]
        if row["account_id"] == account_id
        and filters.get("category") in (None, row["category"])
        and row["amount"] >= filters.get("min_amount", 0)
        and period["from"] <= row["date"] <= period["to"]
    ]
    first = "date" if order == "newest" else "amount"
    found.sort(key=lambda row: (row[first], row["transaction_id"]), reverse=True)
    total = sum(row["amount"] for row in found)
    return {"transactions": found[:limit], "count": len(found), "total": total}


def _find_payee(ctx, name):
    found = [
        {"payee_id": payee["payee_id"], "name": payee["name"]}
        for payee in _now["payees"]
        if name.casefold() in payee["name"].casefold()
    ]
    if not found:
        raise RefusalError("payee_not_found", "name")
    return {"payees": found}


def _get_exchange_rate(ctx, currency, against="EUR"):
    per_euro = {row["currency"]: row["per_euro"] for row in _now["rates"]}
    if currency == against:
        raise RefusalError("same_currency", "against")
    rate = round(per_euro[against] / per_euro[currency], 6)
    return {"currency": currency, "against": against, "rate": rate}


def _list_standing_orders(ctx, payee_id=None):
    if payee_id is not None:
        _row("payees", payee_id, "payee_id")
    orders = _now["standing_orders"]
    found = [order for order in orders if payee_id in (None, order["payee_id"])]
    return {"standing_orders": found}


def _transfer_money(ctx, from_account_id, to, amount, reference=None, confirm=False):
    source = _spendable(from_account_id)
    target = None
    if "account_id" in to:
        target = _row("accounts", to["account_id"], "to")
    else:
        _row("payees", to["payee_id"], "to")
    if target is source:
        raise RefusalError("same_account", "to")
    if source["currency"] != (target or {"currency": "EUR"})["currency"]:
        raise RefusalError("currency_mismatch", "to")
    if amount > TRANSFER_LIMIT:
        raise RefusalError("over_limit", "amount")
    if amount > source["balance"]:
        raise RefusalError("insufficient_funds", "amount")
    left = source["balance"] - amount
    if not confirm:
        return _awaiting(amount=amount, balance_after=left)
    source["balance"] = left
    if target is not None:
        target["balance"] += amount
    transfer = {
        "transfer_id": _new_id("TR", "transfers", ctx),
        "from_account_id": from_account_id,
        "to": to,
        "amount": amount,
        "reference": reference,
    }
    _now["transfers"].append(transfer)
    return {"status": "sent", **transfer, "balance_after": left}


def _add_payee(ctx, name, destination, confirm=False):
    for payee in _now["payees"]:
        if payee["name"] == name or payee["destination"] == destination:
            raise RefusalError("payee_exists", "name")
    if not confirm:
        return _awaiting(name=name)
    payee = {
        "payee_id": _new_id("PY", "payees", ctx),
        "name": name,
        "destination": destination,
    }
    _now["payees"].append(payee)
    return {"status": "saved", **payee}


def _create_standing_order(
    ctx, from_account_id, payee_id, amount, schedule, confirm=False
):
    _spendable(from_account_id)
    _row("payees", payee_id, "payee_id")
    if schedule["every"] == "week" and schedule["day"] > 7:
        raise RefusalError("no_such_day", "schedule")
    first = _next_day(ctx.clock.date(), schedule).isoformat()
    if not confirm:
        return _awaiting(first_payment=first)
    order = {
        "order_id": _new_id("SO", "standing_orders", ctx),
        "from_account_id": from_account_id,
        "payee_id": payee_id,
        "amount": amount,
        "schedule": schedule,
    }
    _now["standing_orders"].append(order)
    return {"status": "created", **order, "first_payment": first}


def _cancel_standing_order(ctx, order_id, confirm=False):
    order = _row("standing_orders", order_id, "order_id")
    if not confirm:
        return _awaiting(order_id=order_id)
    _now["standing_orders"].remove(order)
    return {"status": "cancelled", "order_id": order_id}


def _block_card(ctx, ending, reason, send_replacement=True, confirm=False):
    card = _row("cards", ending, "ending")
    if card["status"] == "blocked":
        raise RefusalError("already_blocked", "ending")
    if not confirm:
        return _awaiting(ending=ending)
    card.update(status="blocked", reason=reason, replacement=send_replacement)
    return {"status": "blocked", "ending": ending, "replacement": send_replacement}


def _open_dispute(ctx, transaction_ids, reason, confirm=False):
    disputed = {one for row in _now["disputes"] for one in row["transaction_ids"]}
    for transaction_id in transaction_ids:
        transaction = _row("transactions", transaction_id, "transaction_ids")
        if transaction["status"] == "pending":
            raise RefusalError("still_pending", "transaction_ids")
        if transaction_id in disputed:
            raise RefusalError("already_disputed", "transaction_ids")
    if not confirm:
        return _awaiting(transaction_ids=transaction_ids)
    dispute = {
        "dispute_id": _new_id("DP", "disputes", ctx),
        "transaction_ids": transaction_ids,
        "reason": reason,
    }
    _now["disputes"].append(dispute)
    return {"status": "opened", **dispute}


def _set_balance_alert(ctx, account_id, below, channels):
    _row("accounts", account_id, "account_id")
    alert = {"account_id": account_id, "below": below, "channels": channels}
    others = [a for a in _now["alerts"] if a["account_id"] != account_id]
    _now["alerts"] = [*others, alert]
    return {"status": "set", **alert}


def _row(collection, value, field):
    """Return the row with this id; refuse in the name of an argument."""
    for row in _now[collection]:
        if row[KEYS[collection]] == value:
            return row
    entity = collection.removesuffix("s")
    raise RefusalError(f"{entity}_not_found", field)


def _spendable(account_id):
    account = _row("accounts", account_id, "from_account_id")
    if account["status"] == "frozen":
        raise RefusalError("account_frozen", "from_account_id")
    return account


def _awaiting(**preview):
    """The answer of every tool that wants a confirmation and has none."""
    return {"status": "awaiting_confirmation", **preview}


def _new_id(prefix, collection, ctx):
    """A new id of five digits, drawn from the task's seed."""
    taken = {row.get(KEYS[collection]) for row in _now[collection]}
    for draw in range(len(taken) + 1):
        digest = hashlib.sha256(f"{ctx.seed} {prefix} {draw}".encode()).digest()
        new_id = f"{prefix}-{10_000 + int.from_bytes(digest[:8], 'big') % 90_000}"
        if new_id not in taken:
            break
    return new_id


def _next_day(date, schedule):
    """The first day after a date on which a standing order is due."""
    while True:
        date += timedelta(days=1)
        day = date.isoweekday() if schedule["every"] == "week" else date.day
        if day == schedule["day"]:
            return date


_TOOLS = {
    "list_accounts": _list_accounts,
    "get_balance": _get_balance,
    "search_transactions": _search_transactions,
    "find_payee": _find_payee,
    "get_exchange_rate": _get_exchange_rate,
    "list_standing_orders": _list_standing_orders,
    "transfer_money": _transfer_money,
    "add_payee": _add_payee,
    "create_standing_order": _create_standing_order,
    "cancel_standing_order": _cancel_standing_order,
    "block_card": _block_card,
    "open_dispute": _open_dispute,
    "set_balance_alert": _set_balance_alert,
}
