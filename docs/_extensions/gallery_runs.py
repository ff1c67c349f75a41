"""How the gallery runs examples."""

import os
import socket
import warnings

_connect = socket.socket.connect


def _connect_locally(self, address):
    if not isinstance(address, str) and address[0] not in ("localhost", "127.0.0.1", "::1"):
        raise OSError(f"an example asked for {address[0]}")
    return _connect(self, address)


def quiet_and_offline(gallery_conf, fname, when):
    """Let an example fail if it warns, or asks the network or a folder of data that readers do not have."""
    if when == "before":
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="fairlearn")  # how it calls pandas
        warnings.filterwarnings("ignore", message="Matplotlib is currently using agg", category=UserWarning)
        os.environ.pop("SKFAIRDP_DATA", None)
        socket.socket.connect = _connect_locally
    else:
        warnings.resetwarnings()
        socket.socket.connect = _connect
