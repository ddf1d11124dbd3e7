"""Where settings come from: flags, environment variables, a TOML file. The values themselves are `puna.config`'s."""

from puna.settings.build import Loaded, load
from puna.settings.help import option_help

__all__ = ["Loaded", "load", "option_help"]
