"""Writes scikit-learn's signatures of the names that standard input lists, one a line, as programs print them.

    tharsis eval --list | jq -r 'select(.name | startswith("sk.")).name' | python record_signatures.py \
        > ../programs/signatures.txt
"""

import importlib
import inspect
import re
import sys

from sklearn.experimental import enable_halving_search_cv  # noqa: F401

for line in sys.stdin:
    name = line.strip()
    module, _, bare = name.removeprefix("sk.").rpartition(".")
    if module:
        found = getattr(importlib.import_module("sklearn." + module), bare)
        # A function that is a default is shown with its address, a number with its type.
        text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", str(inspect.signature(found)))
        print(name, re.sub(r"np\.float64\((.*?)\)", r"\1", text))
