"""`git push` of a rehearsal: the real one, but that it can be made to fail (rehearsal.py)."""

import os
import subprocess
import sys

from writes import Writes

with Writes() as write:
    code = subprocess.run([os.environ["REAL_GIT"], *sys.argv[1:]]).returncode if write.happens else 1
    sys.exit(write.code(code))
