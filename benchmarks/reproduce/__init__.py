"""The papers' tables and figures, measured again with this package.

::

    python -m benchmarks.reproduce ome --quick        # minutes
    python -m benchmarks.reproduce ome --full         # the paper's protocol, as far as the data allow
    python -m benchmarks.reproduce ome --full --report   # only print what the journal holds

Tables: ``ome``, ``dpnr``, ``federate-adult``, ``federate-celeba``, ``pate``. Each is a module with

- ``cells(mode)``: what is to be measured, a list of flat dictionaries, one for each setting and seed;
- ``measure(cell)``: a flat dictionary of numbers;
- ``tables(frame)``: named tables of what was measured, beside what was published;
- ``figures(frame, folder)``, where the paper has figures;
- ``follow_up(frame)``, where further cells depend on a choice among the first ones.

Finished cells are lines of a journal, ``benchmarks/results/reproduce/<table>-<mode>.jsonl``. A run that was stopped, by
whatever means, goes on where it was. Tables are written beside the journal, as Markdown and CSV; those of the
documentation are written by ``--full --report --output docs/reproduction``.
"""
