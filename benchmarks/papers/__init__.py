"""Tables and figures of papers and of the user guide, measured again with this package on real data.

::

    python -m benchmarks.papers ome --quick        # minutes
    python -m benchmarks.papers ome --full         # the paper's protocol, as far as the data allow
    python -m benchmarks.papers ome --full --report   # only print what the journal holds

Of papers (docs/reproduction.md): ``ome``, ``dpnr``, ``federate-adult``, ``federate-celeba``, ``pate``; beyond them,
``federate-adult-trees`` and ``federate-celeba-trees`` have fair trees on the same splits, and
``federate-adult-combinations`` and ``federate-celeba-combinations`` tell which part of FEDERATE does what,
``biased-text`` has its methods on text that can be had, and ``static-embeddings`` sets word vectors that a wheel ships
beside GloVe (it needs ``pip install --no-deps wordllama``). Of the user guide (docs/reproduction/*.md):
``federate-adult-guide``, ``fair-private-guide``, ``pate-guide`` (which shares cells with ``pate``), ``pate-defaults``,
``private-search``, and ``private-training``, which sets PATE beside other libraries that run in an environment of their
own (``_peers_environment``). Each is an ``Experiment`` with

- ``cells(mode)``: what is to be measured, a list of flat dictionaries, one for each setting and seed;
- ``measure(cell)``: a flat dictionary of numbers;
- ``tables(frame)``: named tables of what was measured, beside what was published;
- ``figures(frame, folder)``, where there are figures;
- ``follow_up(frame)``, where further cells depend on a choice among the first ones;
- ``journal``: the name of the file that keeps what was measured.

Finished cells are lines of a journal, ``benchmarks/results/papers/<journal>-<mode>.jsonl``. A run that was
stopped, by whatever means, goes on where it was. A line records the version of the code that measured it: a hash of all
sources of ``skfairdp`` and of this folder, and the versions of NumPy, SciPy, scikit-learn, PyTorch and skorch. After
any change of the code, cells are measured again; ``--accept-old-code`` keeps the old lines instead, and says how many
they are.

``--ship`` puts the lines of one version of the code, compressed, into ``journals/``; they name code, packages,
processor, settings and seed. A shipped journal is frozen with the version that it records: nothing compares that with
the code of today. ``python -m benchmarks.papers tables`` (with growth and the README's picture: ``make tables``) makes
the documents' tables, in ``tables/``, from shipped journals alone, without importing ``skfairdp``; ``make
test-papers`` compares them, and the sentences of the documents with the tables. The same seed and versions give the
same line on the same kind of processor; on another one the last digits of sums differ, and with them what a network
learns, by about as much as another seed.

Tables are written beside the journal, as Markdown and CSV; those of the documentation are in ``tables/``.
"""
