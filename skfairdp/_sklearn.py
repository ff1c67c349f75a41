"""The only file that may import private scikit-learn names.

When a new scikit-learn moves one of them, this is the one place to mend.
"""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions

__all__ = ["HasMethods", "Interval", "Options", "StrOptions", "fit_context", "routing_enabled"]
