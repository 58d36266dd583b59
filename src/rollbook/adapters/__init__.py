"""One adapter per framework. Each uses the framework's logging hook and only translates.

Import the one you need (`from rollbook.adapters.sb3 import RollbookCallback`); nothing is loaded before that.
Native names and native steps are kept; canonical names are aliases (`rollbook.schema.aliases`).
"""

from __future__ import annotations
