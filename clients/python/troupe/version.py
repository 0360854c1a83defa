"""The version of the client, equal to that of the program of the same release."""

__version__ = "0.1.0"
