"""Where settings come from: flags, environment variables, a TOML file. The values themselves are `puna.config`'s."""

from puna.settings.build import Loaded, load, variant
from puna.settings.catalogue import ModelTable, read_catalogue
from puna.settings.help import option_help

__all__ = ["Loaded", "ModelTable", "load", "option_help", "read_catalogue", "variant"]
