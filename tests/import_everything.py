"""Import every module of Syndic; nothing but the library of an extra may be missing.

`make imports` runs it with what `make setup` installs, `.ci/run` also with the core alone.
"""

import importlib
import pkgutil
import sys

import syndic

# libraries that extras bring; the modules that import them at their top are loaded only when they are needed
OPTIONAL = {"grpc", "ibis", "jinja2", "nvflare", "numba", "pyspark", "starlette", "torch", "uvicorn"}


def main() -> int:
    """Import everything, print which modules need an extra, and return how many modules failed otherwise."""
    names = [module.name for module in pkgutil.walk_packages(syndic.__path__, "syndic.")]
    failed = 0
    for name in names:
        if name.endswith("__main__"):
            continue
        try:
            importlib.import_module(name)
        except Exception as error:  # every kind of failure is a finding
            if isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL:
                print(f"{name} needs {error.name}")
            else:
                failed += 1
                print(f"FAILED {name}: {type(error).__name__}: {error}")
    print(f"{len(names)} modules, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
