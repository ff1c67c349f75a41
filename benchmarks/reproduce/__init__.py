"""Tables and figures of papers and of the user guide, measured again with this package on real data.

::

    python -m benchmarks.reproduce ome --quick        # minutes
    python -m benchmarks.reproduce ome --full         # the paper's protocol, as far as the data allow
    python -m benchmarks.reproduce ome --full --report   # only print what the journal holds

Of papers (docs/reproduction.md): ``ome``, ``dpnr``, ``federate-adult``, ``federate-celeba``, ``pate``. Of the user
guide (docs/guide/federate.md and pate.md): ``federate-adult-guide``, ``federate-celeba-guide``, ``pate-guide``, which
measure what the papers do not have and share all other cells with them. Each is an ``Experiment`` with

- ``cells(mode)``: what is to be measured, a list of flat dictionaries, one for each setting and seed;
- ``measure(cell)``: a flat dictionary of numbers;
- ``tables(frame)``: named tables of what was measured, beside what was published;
- ``figures(frame, folder)``, where there are figures;
- ``follow_up(frame)``, where further cells depend on a choice among the first ones;
- ``journal``: the name of the file that keeps what was measured.

Finished cells are lines of a journal, ``benchmarks/results/reproduce/<journal>-<mode>.jsonl``. A run that was
stopped, by whatever means, goes on where it was. A line knows the code that measured it, comments and docstrings left
out, and the versions of NumPy, SciPy, scikit-learn, PyTorch and skorch. After a change of any code that a measurement
can reach, its cells are measured again; ``--accept-old-code`` keeps the old lines instead, and says how many they
are.

Tables are written beside the journal, as Markdown and CSV; those of the documentation are written by ``--full --report
--output docs/reproduction``. The guide's tables are in its text, and its figures in ``docs/_static``.
"""
