"""The version of the client: that of the program with which it was released."""

__version__ = "0.1.0"
