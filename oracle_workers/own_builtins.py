"""A copy of the built-in names, taken before any pack code runs.

A function finds its built-ins in the `__builtins__` of its module as that stood when
the function was made. The modules that a worker's loop consists of set it to this copy
first, so a pack that replaces `len` or `isinstance` in `builtins` breaks only itself.
"""

from __future__ import annotations

import builtins
from typing import Any

OWN_BUILTINS: dict[str, Any] = dict(vars(builtins))
