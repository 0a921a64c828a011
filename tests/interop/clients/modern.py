"""The official Python SDK 2.x as a client of the modern era: runs every scenario against one MCP endpoint and judges
exact results.

Usage: python modern.py LABEL ENDPOINT SERVER ERA
  LABEL     what to print before each check
  ENDPOINT  what the client connects to: the server itself, or the gateway in front of it
  SERVER    the server itself; equal to ENDPOINT in a direct run
  ERA       of the server: `legacy` or `modern`
KEY_ADA and KEY_BOB are what two people identify themselves with to the gateway.
Prints a line per check and `N passed, N failed`; exit code 1 when one failed. `modern.mjs` runs the same scenarios.
"""

import json
import os
import sys
import time
import warnings
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.subscriptions import ToolsListChanged

from modern_person import VERSION, Person, accept, cancel, connected, consent, decline, signed
from scenarios import PATIENCE, equal, run_scenarios, scenario, until

LABEL, ENDPOINT, UPSTREAM, ERA = sys.argv[1:5]
THROUGH = ENDPOINT != UPSTREAM


@scenario("who the server is")
async def _() -> None:
    async with connected(ENDPOINT, accept(), mode="auto") as person:
        equal(person.client.protocol_version, VERSION)
        assert person.client.server_info and person.client.server_info.name.startswith("interop-")
        assert person.client.server_capabilities.tools
        tools = (await person.client.list_tools()).tools
        assert any(tool.name == "book" for tool in tools)


@scenario("a client that probes finds the modern era")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada"), mode="auto") as person:
        equal(person.client.protocol_version, VERSION)
        equal(await person.call("ask", message="Found?"), "ada:Found?")


@scenario("elicitation accepted")
async def _() -> None:
    async with connected(ENDPOINT, accept(party_size=4, seating="terrace", note="Zoë ☂")) as person:
        equal(await person.call("book"), "booked: 4 terrace Zoë ☂")
        equal(len(person.asked), 1)
        question = person.asked[0]
        equal(question.message, "How many, and where?")
        equal(list(question.requested_schema["properties"]), ["party_size", "seating", "note"])
        equal(question.requested_schema["properties"]["party_size"]["maximum"], 12)


@scenario("elicitation declined")
async def _() -> None:
    async with connected(ENDPOINT, decline) as person:
        equal(await person.call("book"), "no booking: decline")
        equal(await person.call("confirm"), "declined")


@scenario("elicitation cancelled")
async def _() -> None:
    async with connected(ENDPOINT, cancel) as person:
        equal(await person.call("book"), "no booking: cancel")
        equal(await person.call("confirm"), "cancelled")


@scenario("yes and no are told apart")
async def _() -> None:
    async with connected(ENDPOINT, accept(sure=True)) as person:
        equal(await person.call("confirm"), "accepted: yes")
    async with connected(ENDPOINT, accept(sure=False)) as person:
        equal(await person.call("confirm"), "accepted: no")


@scenario("URL elicitation")
async def _() -> None:
    async with connected(ENDPOINT, consent) as person:
        equal(await person.call("open_url", id="pay-7"), "url: accept")
        question = person.asked[0]
        expected = ("url", "Please pay", "https://pay.example/pay-7?a=1&b=%20")
        equal((question.mode, question.message, str(question.url)), expected)


@scenario("URL elicitation declined")
async def _() -> None:
    async with connected(ENDPOINT, decline) as person:
        equal(await person.call("open_url", id="pay-8"), "url: decline")


@scenario("URL elicitation by an error, until it is paid")
async def _() -> None:
    async with connected(ENDPOINT, consent) as person:
        id = f"py-{os.getpid()}-{THROUGH}"
        equal(await person.call("pay_first", id=id), "paid after 2 refusals")
        equal(str(person.asked[0].url), f"https://pay.example/{id}?a=1&b=%20")


@scenario("sampling")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        equal(await person.call("summarize", text="a long story"), "toy-model: in short: a long story")
        equal(person.sampled[0].max_tokens, 50)


@scenario("roots")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        equal(await person.call("where"), "file:///home/ada=Ada file:///srv/caf%C3%A9=Café")


@scenario("a prompt and a resource that ask")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        prompt = await person.client.get_prompt("asked")
        equal(prompt.messages[0].content.text, "ada:Write what?")
        resource = await person.client.read_resource("note://ask/soup")
        equal(resource.contents[0].text, "ada:What of soup?")
        equal(len(person.asked), 2)


@scenario("progress and log")
async def _() -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    async with connected(ENDPOINT, accept()) as person:
        text = await person.call("count_slowly", progress, "info", n=5, pause_ms=5, label="slow")
        equal(text, "counted to 5")
        equal(steps, [(i, 5, f"slow {i}") for i in range(1, 6)])
        equal([(log.level, log.logger, log.data) for log in person.logs], [("info", "slow", f"at {i}") for i in range(1, 6)])


@scenario("no log for a request that wants none, or less")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        equal(await person.call("count_slowly", n=3, pause_ms=1, label="quiet"), "counted to 3")
        equal(await person.call("count_slowly", level="error", n=3, pause_ms=1, label="quiet"), "counted to 3")
        equal(person.logs, [])


@scenario("progress and log before and after a question")
async def _() -> None:
    steps: list[float] = []

    async def progress(done: float, _total: float | None, _message: str | None) -> None:
        steps.append(done)

    async with connected(ENDPOINT, signed("ada")) as person:
        equal(await person.call("ask_midway", progress, "info", message="Midway?"), "ada:Midway?")
        equal(steps, [1, 2])
        equal([log.data for log in person.logs], ["step 1", "step 2"])


@scenario("cancellation reaches the server")
async def _() -> None:
    label = f"cancel-{os.getpid()}-{time.time_ns()}"
    async with connected(ENDPOINT, accept()) as person, anyio.create_task_group() as calls:

        async def progress(done: float, _total: float | None, _message: str | None) -> None:
            if done >= 2:
                calls.cancel_scope.cancel()

        calls.start_soon(lambda: person.call("count_slowly", progress, n=100_000, pause_ms=10, label=label))
    async with connected(ENDPOINT, accept()) as person:

        async def stopped() -> bool:
            return await person.call("was_cancelled", label=label) == "true"

        await until(stopped, "the server stops")
        equal(await person.call("was_cancelled", label="another"), "false")


@scenario("cancellation of a round after the first reaches the server")
async def _() -> None:
    label = f"later-{os.getpid()}-{time.time_ns()}"
    async with connected(ENDPOINT, accept(answer="yes")) as person:
        async with anyio.create_task_group() as calls:
            calls.start_soon(lambda: person.call("ask_then_count", None, "info", label=label))
            await until(lambda: any(log.data == "counting" for log in person.logs), "the counting starts")
            calls.cancel_scope.cancel()

        async def stopped() -> bool:
            return await person.call("was_cancelled", label=label) == "true"

        await until(stopped, "the server stops")


@scenario("two questions one after the other")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        equal(await person.call("ask_twice"), "ada:First? then ada:Second, after ada:First??")
        equal([question.message for question in person.asked], ["First?", "Second, after ada:First??"])


@scenario("several questions at once")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        equal(await person.call("ask_at_once", n=8), " ".join(f"ada:Question {i}?" for i in range(8)))
        equal(len(person.asked), 8)


@scenario("20 questions, one call after the other")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        for i in range(20):
            equal(await person.call("ask", message=f"Q{i}"), f"ada:Q{i}")
        equal(len(person.asked), 20)


@scenario("12 calls at once")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person, anyio.create_task_group() as calls:

        async def one(i: int) -> None:
            equal(await person.call("ask", message=f"Q{i}"), f"ada:Q{i}")

        for i in range(12):
            calls.start_soon(one, i)


@scenario("two users at once, each gets their own")
async def _() -> None:
    tools = ["ask", "ask_on_get"] if ERA == "legacy" else ["ask"]
    async with connected(ENDPOINT, signed("ada"), "ada") as ada, connected(ENDPOINT, signed("bob"), "bob") as bob:

        async def one(person: Person, i: int) -> None:
            message = f"{person.name} {i}"
            equal(await person.call(tools[i % len(tools)], message=message), f"{person.name}:{message}")

        async with anyio.create_task_group() as calls:
            for person in (ada, bob):
                for i in range(10):
                    calls.start_soon(one, person, i)
        for person in (ada, bob):
            equal(len(person.asked), 10)
            for question in person.asked:
                assert question.message.startswith(person.name), f"{person.name} saw {question.message}"


@scenario("a question that the client can't answer")
async def _() -> None:
    async with connected(ENDPOINT, lambda _: types.ErrorData(code=-1, message="no screen")) as person:
        try:
            answer = await person.result("book")
        except MCPError as error:
            assert "no screen" in str(error), error
        else:
            raise AssertionError(f"answered {answer}")
        equal(await person.call("echo", text="still here"), "still here")


@scenario("a question to a client without the capability")
async def _() -> None:
    async with connected(ENDPOINT, None) as person:
        try:
            assert (await person.result("book")).is_error
        except MCPError as error:
            # A server that asks all the same is the gateway's to refuse; without one, the SDK does.
            assert error.error.code == -32021 or (not THROUGH and error.error.code == -32600), error.error
        equal(await person.call("echo", text="still here"), "still here")


@scenario("list changed, to who listens")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        tools = person.client.server_capabilities.tools
        async with person.client.listen(tools_list_changed=True) as events:
            # FastMCP of Python 1.x sends such notices, but never says that it does.
            declared = events.honored.tools_list_changed
            if tools is not None and tools.list_changed is not None:
                equal(bool(declared), tools.list_changed)
            equal(await person.call("touch", uri="note://menu"), "touched")
            if declared:
                with anyio.fail_after(PATIENCE):
                    equal(await anext(aiter(events)), ToolsListChanged())


@scenario("errors and large texts")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        try:
            await person.client.read_resource("note://none")
        except MCPError as error:
            assert error.error.code in (-32602, 0), error.error
        else:
            raise AssertionError("there is no such resource")
        for name, arguments in (("echo", {"text": 7}), ("no_such_tool", {})):
            try:
                assert (await person.result(name, **arguments)).is_error
            except MCPError as error:
                equal(error.error.code, -32602)
        menu = await person.client.read_resource("note://menu")
        equal(menu.contents[0].text, "Soup, £4 – naïve café ☕")
        text = "größer – " * 40_000
        equal(await person.call("echo", text=text) == text, True)


@scenario("headers that reach the server")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        seen = json.loads(await person.call("whoami"))
        equal(seen["host"], urlsplit(UPSTREAM).netloc)
        equal(seen["mcp-protocol-version"], "2025-11-25" if ERA == "legacy" else VERSION)
        equal("mcp-session-id" in seen, ERA == "legacy")
        equal(seen.get("mcp-method"), "tools/call" if ERA == "modern" else None)
        if THROUGH:
            assert "authorization" not in seen, "the inbound credential went upstream"
            equal(seen["x-api-key"], "interop-upstream-key")


@scenario("questions on the GET stream", ERA == "legacy")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        equal(await person.call("ask_on_get", message="Here?"), "ada:Here?")

        async def one(i: int) -> None:
            equal(await person.call("ask_on_get", message=f"G{i}"), f"ada:G{i}")

        async with anyio.create_task_group() as calls:
            for i in range(5):
                calls.start_soon(one, i)


@scenario("state belongs to the person", ERA == "legacy")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada"), "ada") as ada, connected(ENDPOINT, signed("bob"), "bob") as bob:
        before = int(await ada.call("counter"))
        await bob.call("counter")
        equal(await ada.call("counter"), str(before + 1))
        sessions = [json.loads(await person.call("whoami"))["mcp-session-id"] for person in (ada, bob)]
        assert sessions[0] != sessions[1]


@scenario("the server forgets the session; nobody notices", ERA == "legacy")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        seen = json.loads(await person.call("whoami"))
        headers = {name: seen[name] for name in ("mcp-session-id", "mcp-protocol-version")}
        async with httpx2.AsyncClient() as http:
            equal((await http.delete(UPSTREAM, headers=headers)).status_code, 200)
        equal(await person.call("counter"), "1")
        equal(await person.call("ask", message="Back?"), "ada:Back?")
        equal(await person.call("ask_on_get", message="Here too?"), "ada:Here too?")


warnings.simplefilter("ignore")
sys.exit(anyio.run(run_scenarios, LABEL, PATIENCE * 4))
