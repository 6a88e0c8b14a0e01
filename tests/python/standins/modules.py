"""Puts modules that stand in for an engine where `import` finds them, and takes them away again.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import sys
import types


def module(name, **contents):
    made = types.ModuleType(name)
    vars(made).update(contents)
    return made


@contextlib.contextmanager
def present(modules, also_forget=()):
    """modules: full names with their modules, every parent among them. also_forget: importers to load anew."""
    names = [made.__name__ for made in modules]
    before = {name: sys.modules.pop(name, None) for name in (*names, *also_forget)}
    try:
        for made in modules:
            sys.modules[made.__name__] = made
            parent, _, leaf = made.__name__.rpartition(".")
            if parent:
                setattr(sys.modules[parent], leaf, made)
        yield
    finally:
        for name, old in before.items():
            sys.modules.pop(name, None)
            if old is not None:
                sys.modules[name] = old
