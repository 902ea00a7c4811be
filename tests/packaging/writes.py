"""Counts what writes in a rehearsal, and says which one is to fail and how (rehearsal.py)."""

import fcntl
import os
import subprocess


class Writes:
    """One command that writes. No two of them write at once."""

    def __enter__(self):
        self.lock = open(os.environ["FAKE_RELEASES"] + ".lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.fails = False
        with open(os.environ["FAKE_WRITES"], "a+") as file:
            file.seek(0)
            number = int(file.read() or 0) + 1
            file.truncate(0)
            file.write(str(number))
        if number == int(os.environ["FAKE_NUMBER"]):
            self.fails = not os.environ["FAKE_MEANWHILE"]
            subprocess.run(["bash", "-ec", os.environ["FAKE_MEANWHILE"]], check=True, stdout=subprocess.DEVNULL)
        self.happens = not self.fails or bool(os.environ.get("FAKE_AFTER"))
        return self

    def code(self, code):
        return 1 if self.fails else code

    def __exit__(self, *_):
        self.lock.close()
