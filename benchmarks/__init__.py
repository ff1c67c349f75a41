"""Benchmarks: how fast and how good the package is, and the papers' tables measured again.

``case_<topic>.py`` compares the package with a peer, seconds or quality; ``make bench`` runs all cases and
``make bench ONLY=noise`` those of one topic. ``papers/`` measures tables and figures of papers and of the user guide
on real data, for hours if need be; its docstring says how. The two halves have nothing to do with each other:
``case_pate.py`` is about the speed of PATE, ``papers/pate_paper.py`` about its accuracy and fairness.

Machines are noisy and differ, so no number of seconds is a target: a case runs ours and the peer in turn, several
times, and compares medians. A case is a function::

    from benchmarks import Peer, Quantities, Timings, case

    @case("noise", "Laplace noise, 100,000 x 100, against numpy", ratio_at_most=1.5)
    def laplace_against_numpy():
        stream, rng = random_stream(None), np.random.default_rng()
        return Timings(
            ours=lambda: discrete_laplace((100_000, 100), 700.0, stream),
            other=lambda: rng.laplace(size=(100_000, 100)),
        )

``ratio_at_most=r`` holds when ours takes at most r times the peer's time, ``speedup_at_least=s`` when the peer takes
at least s times ours. ``ours_work`` and ``other_work`` divide each side's time by its own amount of work (values,
rows) where a slow peer gets less of it. A case on quality returns ``Quantities(ours, other)`` with
``shortfall_at_most``, which holds when ``other - ours`` does not exceed it, or ``at_most`` / ``at_least`` on ours
alone.

Cases marked ``study=True`` measure coverage or accuracy over many fits; they run when their topic is asked for. The
command ends with 1 if a target is missed, and names it, with the reason where the case gives one (``reason="..."``).

``python -m benchmarks growth`` measures how cost and memory grow with the number of rows; ``growth.py`` says how.

A peer that is no dependency of the package lives in an environment of its own, made on demand under ``.venv-bench/``;
``Peer`` starts a process there and times one call at a time, so that it takes turns with ours::

    peer = Peer("diffprivlib", ["diffprivlib==0.6.6"], setup="...", run="...")
    return Timings(ours=..., other=peer, ours_work=10_000_000, other_work=10_000)
"""

from benchmarks._case import Peer, Quantities, Timings, case

__all__ = ["Peer", "Quantities", "Timings", "case"]
