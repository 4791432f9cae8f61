"""Why a likelihood has no kernel."""

__all__ = ["NoKernelError"]


class NoKernelError(Exception):
    """A likelihood has an operation without a rule; the message says which."""

    @property
    def reason(self) -> str:
        """The message."""
        return str(self)
