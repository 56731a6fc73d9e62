from support.reproduction import data, settings

__all__ = ["data", "settings"]
