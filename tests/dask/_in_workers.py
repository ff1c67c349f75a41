"""What workers of a cluster are sent: estimators that kill their process once, or draw noise that they should not."""

import os
import signal
from typing import ClassVar

from sklearn.tree import DecisionTreeClassifier

from skfairdp import LaplacePrivatizer
from skfairdp.dask import _written_once
from skfairdp.table_files import file_digest


def die_once(flag, note=""):
    """Kill this process as a power cut would, the first time that anybody comes here with this flag."""
    try:
        with open(flag, "x", encoding="utf-8") as file:
            file.write(note)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class DyingPrivatizer(LaplacePrivatizer):
    """Draws, and dies before anybody has seen the draw."""

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    def transform(self, X):
        drawn = super().transform(X)
        die_once(self.flag)
        return drawn


class RepeatingPrivatizer(LaplacePrivatizer):
    """The planted fault: every partition starts from the same seed."""

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    def transform(self, X):
        return LaplacePrivatizer(self.epsilon, random_state=0).fit(X).transform(X)


class DyingTree(DecisionTreeClassifier):
    """A teacher whose worker dies in the middle of its training or of its vote, once; an ordinary tree elsewhere."""

    dies_in, flag = "", ""

    def fit(self, X, y, sample_weight=None, check_input=True):
        if self.dies_in == "fit":
            die_once(self.flag)
        return super().fit(X, y, sample_weight, check_input)

    def predict(self, X, check_input=True):
        if self.dies_in == "predict":
            die_once(self.flag)
        return super().predict(X, check_input)


def let_trees_die(dies_in, flag):
    """Say in a worker when its trees die."""
    DyingTree.dies_in, DyingTree.flag = dies_in, flag


def die_after_publishing(flag):
    """Let this worker die once between the public name of a part and its receipt, with the digest of what was seen."""
    publish = _written_once.publish_once

    def publish_and_die(draft, target):
        publish(draft, target)
        die_once(flag, f"{target.name} {file_digest(target)}")

    _written_once.publish_once = publish_and_die


def in_another_order(frame):
    """What a shuffle may do: the same rows, each time in another order."""
    return frame.sample(frac=1.0, random_state=int.from_bytes(os.urandom(4), "big"))
