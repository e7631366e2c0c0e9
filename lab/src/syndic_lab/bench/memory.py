"""How much memory this process has had at the most."""

import resource
from pathlib import Path


def peak_megabytes() -> float:
    """Return the largest resident size so far, in millions of bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike ru_maxrss, which survives exec, this does not begin with what the parent had
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
