"""A worker that dies or sleeps on request, for the test of the runner."""

from __future__ import annotations

import json
import os
import sys
import time

for line in sys.stdin:
    print(json.dumps(["start"]), flush=True)
    case = json.loads(line)
    if case == "die":
        os.abort()
    if case == "sleep":
        time.sleep(60)
    print(json.dumps(["end", "right", ""]), flush=True)
