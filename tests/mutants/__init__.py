"""Planted faults that the tests must find: what passes only because nobody looks is found here.

::

    make mutants                     # all of them, in a copy of the tree each
    make mutants ONLY=pate JOBS=4    # those whose name contains a word, four at a time

A **mutant** is the package with one small fault in it that a reader could overlook: noise that is too small, a gap
between the wrong groups, test rows among the training rows. ``mutants.toml`` lists them, each with the tests that must
fail. A mutant is

- **killed** if one of its tests fails, as it should;
- **survived** if all of them pass: a test is missing;
- **stale** if its text no longer stands exactly once in its file: the code has moved on, and the entry must follow;
- **broken** if its tests cannot be collected, are slow ones, or do not end;
- **skipped** if all its tests are, for want of real data (``SKFAIRDP_DATA``).

The tests run as ``make test`` runs them: a fault that only a slow test finds is not found.

The command ends with 1 if any is survived, stale or broken. Before anything is planted, all tests that are named must
pass on an unchanged copy: a test that fails anyway finds nothing.

To add one, plant it by hand, see its test fail, and write an entry with

- ``name``: a few words, the module first;
- ``file``: the path from the root of the repository;
- ``old`` and ``new``: a text that stands exactly once in the file, and what replaces it;
- ``tests``: the tests that must fail, as few as possible and fast ones;
- ``why``: one sentence about what a user would suffer.
"""
