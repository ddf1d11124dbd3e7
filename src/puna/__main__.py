"""`python -m puna` is the same as `puna`."""

import sys

from puna.cli import main

sys.exit(main())
