"""Loaded by each Python process that a test starts: sealing children are forked there as well; see sealing_forks."""

import os
import sys


class _Watch:
    """Changes how a keeper starts the child that seals, once that module is imported; loads nothing before."""

    def find_spec(self, name, path=None, target=None):
        if name != "rollbook.keeper.child":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                from sealing_forks import forking

                module.start_child = forking(module.start_child)

            spec.loader.exec_module = exec_module
        return spec


if os.environ.get("SEALING_FORKS"):
    sys.meta_path.insert(0, _Watch())
