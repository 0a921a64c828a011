"""Plays the cases of the policy for questions with a Python SDK, and says what became of each.

Usage: python policy.py ERA CASES     ERA of the client: `legacy` or `modern`; CASES: the file (judge/policy.mjs)
Prints a line of JSON for each case: what the tool said, or how it failed, and what the person was asked.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio

from scenarios import PATIENCE, reason

ERA, CASES = sys.argv[1:3]
if ERA == "modern":
    from modern_person import connected, types
else:
    from person import connected, types


async def play(case: dict[str, Any]) -> dict[str, Any]:
    """Plays one case with a client of its own."""
    answers = iter(case["says"])
    asked: list[str] = []
    others = 0

    async def answer(params: Any) -> types.ElicitResult:
        asked.append(params.message)
        said = next(answers, {"action": "cancel"})
        if said is None:
            await anyio.sleep_forever()
        return types.ElicitResult(**said)

    said = failed = None
    try:
        async with connected(case["url"], answer if case["can"] else None, headers=case["headers"]) as person:
            try:
                result = await person.result(case["tool"], **case["args"])
            finally:
                others = len(person.sampled)
            text = result.content[0].text
            if result.is_error if ERA == "modern" else result.isError:
                failed = text
            else:
                said = text
    except Exception as error:
        failed = reason(error)
    return {"said": said, "failed": failed, "asked": asked, "others": others}


async def main() -> None:
    for case in json.loads(Path(CASES).read_text()):
        outcome: dict[str, Any] = {"failed": "the case did not end"}
        with anyio.move_on_after(PATIENCE):
            outcome = await play(case)
        print(json.dumps({"name": case["name"], **outcome}), flush=True)


warnings.simplefilter("ignore")
anyio.run(main)
