"""A Modal of our own on loopback, for tests that drive Modal's genuine SDK."""

from tests.modal_emulator.handle import ModalEmulator, When

__all__ = ["ModalEmulator", "When"]
