"""Random numbers for torch, taken from a :class:`~skfairdp.random.RandomStream`."""

import torch

from skfairdp.random import RandomStream


def torch_generator(stream: RandomStream) -> torch.Generator:
    """Make a torch generator from the next words of a stream.

    It is for draws that protect nobody: initial weights, the order of rows, dropout in
    training. Noise that carries a guarantee is drawn by ``mechanisms``, from the stream
    itself. torch's global generator is neither read nor advanced.

    Parameters
    ----------
    stream : RandomStream
        Advanced by one 64-bit word, so that two generators from one stream differ.

    Returns
    -------
    torch.Generator

    Examples
    --------
    >>> import torch
    >>> from skfairdp.random import random_stream
    >>> first, second = (torch_generator(random_stream(0)) for _ in range(2))
    >>> bool((torch.rand(3, generator=first) == torch.rand(3, generator=second)).all())
    True
    """
    generator = torch.Generator(device="cpu")
    generator.manual_seed(int(stream.uint64(1)[0]) >> 1)  # manual_seed takes 63 bits without a sign
    return generator
