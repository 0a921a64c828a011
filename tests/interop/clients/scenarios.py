"""What every client here needs, whichever SDK it has: waiting, comparing, and the run of scenarios."""

import json
import os
import re
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

#: How long a client waits for anything, in seconds.
PATIENCE = 10.0


async def until(condition: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        met = condition()
        if isinstance(met, Awaitable):
            met = await met
        if met:
            return
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s in vain: {what}"
        await anyio.sleep(0.02)


def equal(left: Any, right: Any) -> None:
    assert left == right, f"\n  got      {left!r}\n  expected {right!r}"


Scenario = Callable[[], Awaitable[None]]
scenarios: dict[str, Scenario] = {}


def scenario(name: str, when: bool = True) -> Callable[[Scenario], Scenario]:
    """Registers a scenario, if it is one of this run."""

    def add(run: Scenario) -> Scenario:
        if when:
            scenarios[name] = run
        return run

    return add


def reason(error: BaseException) -> str:
    """The first cause inside the exception groups that task groups make."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    last = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    place = f" (line {last.lineno} of {os.path.basename(last.filename)})" if last else ""
    return f"{type(error).__name__}: {error}{place}"


async def run_scenarios(label: str, patience: float) -> int:
    """Runs the scenarios whose name has ONLY in it, and is not in the list SKIP, one after the other, `patience` seconds each at most, and prints a
    line for each and their count. Gives the exit code."""
    passed = failed = 0
    only = os.environ.get("ONLY", "")
    skip = json.loads(os.environ.get("SKIP", "[]"))
    for name, run in scenarios.items():
        if only not in name or name in skip:
            continue
        try:
            with anyio.fail_after(patience):
                await run()
        except Exception as error:
            failed += 1
            print(f"FAIL  {label}: {name}\n      " + re.sub(r"\n", "\n      ", reason(error)), flush=True)
        else:
            passed += 1
            print(f"ok    {label}: {name}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if failed == 0 else 1
