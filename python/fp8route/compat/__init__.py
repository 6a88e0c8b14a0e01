"""Drop-ins: functions with the signatures of other libraries, and putting them in those libraries' places.

Nothing is patched on import. `install("torch")`, `install("sgl_kernel")` and `install("flashinfer")` replace the functions in
the library and wherever a loaded module holds them by name; `uninstall` restores them. What a drop-in does not cover it
hands to the original, and counts.
SPDX-License-Identifier: Apache-2.0
"""
import importlib
import sys
import threading

TARGETS = ("torch", "sgl_kernel", "flashinfer")

_lock = threading.RLock()  # a thread's table may end while its own thread adds up
_places_lock = threading.RLock()  # of install and uninstall: one at a time
_counts = {}  # of every live thread, and under None of those that ended: {name: [routed, original]}
_installed = {}  # of a target: (holder, name, original) of each place


def _add(totals, counts):
    for name, pair in list(counts.items()):
        total = totals.setdefault(name, [0, 0])
        total[0] += pair[0]
        total[1] += pair[1]


class _Ender:
    """Lies in a thread's own storage: when that goes, its counts are added to those of the threads before."""

    def __init__(self, counts):
        with _lock:
            _counts[id(self)] = counts

    def __del__(self, _counts=_counts, _lock=_lock, _add=_add):
        with _lock:
            _add(_counts.setdefault(None, {}), _counts.pop(id(self), {}))


class _Local(threading.local):
    def __init__(self):
        self.counts = {}
        self.ender = _Ender(self.counts)


_local = _Local()


def count(name, is_routed):
    """Counts in the thread's own table: no lock."""
    counts = _local.counts
    pair = counts.get(name)
    if pair is None:  # `pair` stays ours where a reset takes it out of the table meanwhile
        pair = counts[name] = [0, 0]
    pair[0 if is_routed else 1] += 1


def stats(reset=False):
    """Calls of each drop-in so far: {"torch._scaled_mm": {"routed": 12, "original": 1}}. What was compiled is not counted."""
    totals = {}
    with _lock:
        for counts in list(_counts.values()):
            _add(totals, counts)
            if reset:
                counts.clear()
    return {name: {"routed": pair[0], "original": pair[1]} for name, pair in sorted(totals.items())}


class Installation:
    """What install returns: on leaving a `with` block it uninstalls what this call installed."""

    def __init__(self, target, is_new):
        self._target, self._is_new = target, is_new

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._is_new:
            uninstall(self._target)


def _holders(function):
    """Every module, and the name by which it holds the function."""
    for module in list(sys.modules.values()):
        if module is None or getattr(module, "__name__", "").startswith("fp8route"):
            continue
        try:
            names = [key for key, value in list(vars(module).items()) if value is function]
        except TypeError:  # no dictionary
            continue
        for key in names:
            yield module, key


def _check(target):
    if target not in TARGETS:
        raise ValueError(f"target is {target!r}: it must be one of {', '.join(TARGETS)}")


def install(target):
    """Puts the drop-ins in the library's place. Raises ImportError where that library is not here."""
    _check(target)
    with _places_lock:
        if target in _installed:
            return Installation(target, False)
        _installed[target] = _replace(target)
    return Installation(target, True)


def _replace(target):
    dropin = importlib.import_module(f"fp8route.compat.{target}")
    library = importlib.import_module(target)
    replaced = []
    for name in dropin.REPLACED:
        original = getattr(library, name, None)
        if original is None:
            continue
        dropin.ORIGINALS[name] = original
        for holder, key in [(library, name), *_holders(original)]:
            setattr(holder, key, getattr(dropin, name))
            replaced.append((holder, key, original))
    return replaced


def uninstall(target=None):
    """Restores one library's functions, or all."""
    if target is not None:
        _check(target)
    with _places_lock:
        for name in [target] if target else list(_installed):
            for holder, key, original in _installed.pop(name, []):
                setattr(holder, key, original)


def installed():
    with _places_lock:
        return sorted(_installed)


def original_of(target, originals, name):
    """The function that a drop-in stands for; None where its library is not here."""
    if name not in originals:
        try:
            found = getattr(importlib.import_module(target), name, None)
        except ImportError:
            found = None
        dropin = getattr(sys.modules.get(f"fp8route.compat.{target}"), name, None)
        originals[name] = None if found is dropin else found
    return originals[name]
