"""Ten accounts that money can be moved between."""

import copy

_bank = {}


def list_tools():
    return ["read_balance", "move_money", "list_movements"]


def reset(*, ctx, fixtures=None):
    _bank.clear()
    accounts = copy.deepcopy((fixtures or {})["accounts"])
    _bank["balances"] = {row["account_id"]: row["cents"] for row in accounts}
    _bank["movements"] = []


def call_tool(name, arguments, *, ctx):
    return _TOOLS[name](**arguments)


def get_state():
    return copy.deepcopy(_bank)


def _read_balance(account):
    if account not in _bank["balances"]:
        return {"error": {"code": "no_such_account"}}
    return {"account": account, "cents": _bank["balances"][account]}


def _list_movements(account):
    if account not in _bank["balances"]:
        return {"error": {"code": "no_such_account"}}
    touching = [m for m in _bank["movements"] if account in (m["source"], m["target"])]
    return {"account": account, "movements": touching}


def _move_money(source, target, cents):
    balances = _bank["balances"]
    if source not in balances or target not in balances:
        return {"error": {"code": "no_such_account"}}
    if balances[source] < cents:
        return {"error": {"code": "not_covered"}}
    balances[source] -= cents
    balances[target] += cents
    movement = {
        "number": f"mv-{len(_bank['movements']) + 1:03d}",
        "source": source,
        "target": target,
        "cents": cents,
    }
    _bank["movements"].append(movement)
    return {"status": "booked", "movement": movement}


_TOOLS = {
    "read_balance": _read_balance,
    "move_money": _move_money,
    "list_movements": _list_movements,
}
