# Runs a Pulumi program in Python. The path of Python has neither the working directory nor that of the program until the
# program starts: a file of the program must not be imported in the place of a standard module by what runs it.
import sys

sys.path[:] = [entry for entry in sys.path if entry]

import argparse
import asyncio
import inspect
import logging
import os
import runpy
import traceback
from concurrent.futures import ThreadPoolExecutor

LOGGED = 32  # the exit code of a program that failed and has said why

try:
    import pulumi
    import pulumi.runtime
except ImportError:
    traceback.print_exc()
    sys.exit(
        "The package pulumi cannot be imported by " + sys.executable + ": list it in requirements.txt or pyproject.toml, "
        "and give the program a virtual environment (virtualenv: venv below runtime.options in Pulumi.yaml), into which "
        "packages are installed."
    )


def arguments():
    parser = argparse.ArgumentParser(prog="pulumi-language-python")
    for name in ("monitor", "engine", "organization", "project", "stack", "root-directory"):
        parser.add_argument("--" + name)
    parser.add_argument("--parallel", type=int)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("program")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    return vars(parser.parse_args())


def settings(given):
    """The settings, without what an older SDK does not know."""
    known = inspect.signature(pulumi.runtime.Settings.__init__).parameters
    return pulumi.runtime.Settings(**{name: value for name, value in given.items() if name in known})


def configure():
    config = pulumi.runtime.get_config_env()
    if hasattr(pulumi.runtime, "set_all_config") and hasattr(pulumi.runtime, "get_config_secret_keys_env"):
        pulumi.runtime.set_all_config(config, pulumi.runtime.get_config_secret_keys_env())
        return
    for key, value in config.items():
        pulumi.runtime.set_config(key, value)


def own_traceback():
    """The traceback from the program's first frame on, or all of it if the program was not running."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    ran = [frame.filename in ("<frozen runpy>", runpy.__file__) for frame in frames]
    if True not in ran or False not in ran[ran.index(True):]:
        return traceback.format_exc()
    return traceback.format_exc(limit=ran.index(False, ran.index(True)) - len(frames))


def main():
    given = arguments()
    program, args = given.pop("program"), given.pop("args")
    if os.path.isdir(program) and not os.path.exists(os.path.join(program, "__main__.py")):
        sys.exit("There is no __main__.py in " + program + ": write the program there, or name its file as main in "
                 "Pulumi.yaml.")
    configure()
    pulumi.runtime.configure(settings(given))
    sys.argv = [program] + args
    if not os.path.isdir(program):
        sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(max_workers=4 * max(given["parallel"] or 1, 1))
    loop.set_default_executor(executor)
    # What a failed program leaves unfinished is not worth a complaint of asyncio.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    try:
        loop.run_until_complete(
            pulumi.runtime.run_in_stack(lambda: runpy.run_path(program, run_name="__main__"))
        )
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        sys.exit(LOGGED)
    except Exception:
        pulumi.log.error("Program failed with an unhandled exception:\n" + own_traceback())
        sys.exit(LOGGED)
    finally:
        executor.shutdown(wait=True)
        loop.close()
        sys.stdout.flush()
        sys.stderr.flush()


main()
