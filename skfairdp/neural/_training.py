"""Training: a skorch net that is fed whole batches of tensors."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EpochTimer, PrintLog

from skfairdp.neural._losses import Targets

_OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


@contextmanager
def torch_seed(seed: int, device: str = "cpu") -> Iterator[None]:
    """Seed torch inside the block, and leave its global stream as it was after it.

    Initial weights and dropout can only be drawn from torch's global generator.
    """
    devices = [torch.cuda.current_device()] if device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def resolve_device(device: str) -> str:
    """``"auto"`` is the first GPU if there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} was asked for, but torch finds no GPU; use device='cpu' or 'auto'.")
    return device


def resolve_optimizer(optimizer: str | type[torch.optim.Optimizer]) -> type[torch.optim.Optimizer]:
    """Look an optimiser up by name; a class is taken as it is."""
    return _OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer


class TensorBatches:
    """Rows as tensors, handed out in whole batches by one indexing each.

    Parameters
    ----------
    x : Tensor of shape (n, ...)
        The rows.
    targets : Targets
        Their labels, groups and weights.
    batch_size : int
        Rows of a batch; the last one may be smaller.
    shuffle : bool
        Draw a new order for every pass, from torch's global generator.
    """

    def __init__(self, x: torch.Tensor, targets: Targets, batch_size: int, shuffle: bool):
        self.x = x
        self.targets = targets
        self.batch_size = batch_size
        self.shuffle = shuffle

    def __len__(self) -> int:
        return len(self.x)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, Targets]]:
        n = len(self.x)
        order = torch.randperm(n).to(self.x.device) if self.shuffle else torch.arange(n, device=self.x.device)
        y, groups, weight = self.targets
        for start in range(0, n, self.batch_size):
            rows = order[start : start + self.batch_size]
            yield (
                self.x[rows],
                Targets(y[rows], None if groups is None else groups[rows], None if weight is None else weight[rows]),
            )


def adversary_schedule(schedule: str, epoch: int, n_epochs: int) -> float:
    """Share of the adversary's weight that epoch ``epoch`` (from 0) uses.

    ``"sigmoid"`` is ``2 / (1 + exp(-p)) - 1`` with p rising from 0 to 10 over the epochs.
    """
    progress = epoch / max(n_epochs - 1, 1)
    if schedule == "constant":
        return 1.0
    return progress if schedule == "linear" else 2.0 / (1.0 + math.exp(-10.0 * progress)) - 1.0


class ProgressBar(Callback):
    """One bar over the epochs, with the losses beside it."""

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        from tqdm.auto import tqdm

        self.bar_ = tqdm(total=net.max_epochs, unit="epoch", leave=False)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        losses = {k: f"{v:.3f}" for k, v in net.history[-1].items() if k.endswith("_loss")}
        self.bar_.set_postfix(losses)
        self.bar_.update()

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.bar_.close()
        del self.bar_


class FederateNet(NeuralNet):
    """A skorch net whose data are :class:`TensorBatches`, and whose history has one row per epoch.

    Parameters
    ----------
    module, criterion
        A ``FederateModule`` and a ``FederateLoss``.
    adversary_weight : float
        lambda, at the end of the schedule.
    schedule : {"sigmoid", "linear", "constant"}
        How lambda rises over the epochs.
    patience : int or None
        Stop after that many epochs without a better ``valid_loss`` and go back to the best weights.
    **kwargs
        What ``skorch.NeuralNet`` takes.
    """

    def __init__(
        self,
        module: Any,
        criterion: Any,
        adversary_weight: float = 0.0,
        schedule: str = "sigmoid",
        patience: int | None = None,
        **kwargs: Any,
    ):
        self.adversary_weight = adversary_weight
        self.schedule = schedule
        self.patience = patience
        super().__init__(module, criterion=criterion, **kwargs)

    @property
    def _default_callbacks(self) -> list[tuple[str, Callback]]:
        callbacks: list[tuple[str, Callback]] = [("epoch_timer", EpochTimer())]
        if self.verbose == 1:
            callbacks.append(("progress", ProgressBar()))
        elif self.verbose > 1:
            callbacks.append(("print_log", PrintLog()))
        return callbacks

    def fit_loop(self, X: Any, y: Any = None, epochs: int | None = None, **fit_params: Any) -> "FederateNet":
        """Train on ``X = (train, valid)``, two ``TensorBatches`` of which the second may be None."""
        train, valid = X
        self.interrupted_ = self.stopped_early_ = False
        n_epochs = self.max_epochs if epochs is None else epochs
        datasets = {"dataset_train": train, "dataset_valid": valid}
        best = (math.inf, 0, None)
        for epoch in range(n_epochs):
            try:
                self.module_.reversal = self.adversary_weight * adversary_schedule(self.schedule, epoch, n_epochs)
                self.notify("on_epoch_begin", **datasets)
                self.run_single_epoch(train, training=True, prefix="train", step_fn=self.train_step)
                self.run_single_epoch(valid, training=False, prefix="valid", step_fn=self.validation_step)
            except KeyboardInterrupt:
                self.interrupted_ = True  # a person, not a callback: whoever called fit must hear of it
                break
            if valid is not None and self.patience is not None:
                best = self._keep_best(epoch, best)
                self.stopped_early_ = epoch - best[1] >= self.patience
            try:
                self.notify("on_epoch_end", **datasets)
            except KeyboardInterrupt:
                self.stopped_early_ = True  # the way in which skorch's callbacks end a training
            if self.stopped_early_:
                break
        if best[2] is not None and not self.interrupted_:
            self.module_.load_state_dict(best[2])
        return self

    def _keep_best(self, epoch: int, best: tuple) -> tuple:
        loss = self.history[-1]["valid_loss"]
        if not loss < best[0]:  # nan is no improvement either
            return best
        return loss, epoch, {name: value.clone() for name, value in self.module_.state_dict().items()}

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Callable, **fit_params: Any
    ) -> None:
        """Go once through the batches and record the weighted means of the losses."""
        if iterator is None:
            return
        self._set_training(training)
        parts: dict[str, list[torch.Tensor]] = {}
        sizes: list[int] = []
        for batch in iterator:
            self.notify("on_batch_begin", batch=batch, training=training)
            step = step_fn(batch)
            sizes.append(len(batch[0]))
            for name, value in self.criterion_.parts.items():
                parts.setdefault(name, []).append(value)
            self.notify("on_batch_end", batch=batch, training=training, **step)
        # The losses stay tensors until here: asking for one number per batch would wait for the device each time.
        share = torch.tensor(sizes, dtype=torch.float64) / sum(sizes)
        means = {name: float(torch.stack(values).double().cpu() @ share) for name, values in parts.items()}
        objective = means["classifier_loss"] + self.criterion_.fairness_penalty * means.get("fairness_gap", 0.0)
        if not training:
            self.history.record("valid_loss", objective)
            return
        for name, value in means.items():
            self.history.record(name, value)
        self.history.record("adversary_weight", self.module_.reversal)
        self.history.record("train_loss", objective - self.module_.reversal * means.get("adversary_loss", 0.0))
        self.history.record("train_batch_count", len(sizes))

    def train_step(self, batch: tuple[torch.Tensor, Targets], **fit_params: Any) -> dict[str, Any]:
        """One step of the optimiser."""
        x, targets = batch
        self.optimizer_.zero_grad(set_to_none=True)
        outputs = self.module_(x)
        loss = self.criterion_(outputs, targets)
        loss.backward()
        self.notify("on_grad_computed", named_parameters=self.module_.named_parameters(), batch=batch, training=True)
        self.optimizer_.step()
        return {"loss": loss, "y_pred": outputs}

    def validation_step(self, batch: tuple[torch.Tensor, Targets], **fit_params: Any) -> dict[str, Any]:
        """The losses of a batch, without learning from it."""
        x, targets = batch
        with torch.no_grad():
            outputs = self.module_(x)
            loss = self.criterion_(outputs, targets)
        return {"loss": loss, "y_pred": outputs}
