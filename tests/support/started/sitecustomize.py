"""Loaded by each Python process that a test starts: sealing children are forked there as well; see sealing_forks."""

import os
import sys

CHANGED = {
    "rollbook.keeper.child": ("start_child", "forking"),
    "rollbook.keeper.launch": ("_program", "keeper_program"),
}


class _Watch:
    """Changes how children and keepers are started, once those modules are imported; loads nothing before."""

    def find_spec(self, name, path=None, target=None):
        if name not in CHANGED:
            return None
        import importlib.util

        attribute, change = CHANGED.pop(name)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                import sealing_forks

                setattr(module, attribute, getattr(sealing_forks, change)(getattr(module, attribute)))

            spec.loader.exec_module = exec_module
        return spec


if os.environ.get("SEALING_FORKS"):
    sys.meta_path.insert(0, _Watch())
