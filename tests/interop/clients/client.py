"""The official Python SDK as client: runs every scenario against one MCP endpoint and judges exact results.

Usage: python client.py LABEL ENDPOINT SERVER
  LABEL     what to print before each check
  ENDPOINT  what the client connects to: the server itself, or the gateway in front of it; by HTTP+SSE where it
            ends in /sse
  SERVER    the server itself; equal to ENDPOINT in a direct run
SERVER_ERA=modern says that the server is one of the modern era: it has no sessions, and nothing on a GET stream.
Prints a line per check and `N passed, N failed`; exit code 1 when one failed. `client.mjs` runs the same scenarios.
"""

import json
import os
import sys
import time
import warnings
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import mcp.types as types
from mcp import McpError
from pydantic import AnyUrl, BaseModel

from person import Person, accept, cancel, connected, decline, signed
from scenarios import PATIENCE, Scenario, equal, run_scenarios, scenario, scenarios, until

LABEL, ENDPOINT, UPSTREAM = sys.argv[1:4]
THROUGH = ENDPOINT != UPSTREAM
#: The client has one stream, which is its session.
OLDEST = ENDPOINT.endswith("/sse")
MODERN = os.environ.get("SERVER_ERA") == "modern"


@scenario("elicitation accepted")
async def _() -> None:
    async with connected(ENDPOINT, accept(party_size=4, seating="terrace", note="Zoë ☂")) as person:
        equal(await person.call("book"), "booked: 4 terrace Zoë ☂")
        equal(len(person.asked), 1)
        question = person.asked[0]
        equal(question.message, "How many, and where?")
        equal(list(question.requestedSchema["properties"]), ["party_size", "seating", "note"])
        equal(question.requestedSchema["properties"]["party_size"]["maximum"], 12)


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


@scenario("URL elicitation and its completion")
async def _() -> None:
    async with connected(ENDPOINT, lambda _: types.ElicitResult(action="accept")) as person:
        equal(await person.call("open_url", id="pay-7"), "url: accept")
        question = person.asked[0]
        equal((question.mode, str(question.url)), ("url", "https://pay.example/pay-7?a=1&b=%20"))
        # The modern era has neither such ids nor a notice of the end: the gateway makes up the one that clients need.
        if MODERN:
            assert question.elicitationId
            return
        equal(question.elicitationId, "pay-7")
        complete = {"method": "notifications/elicitation/complete", "params": {"elicitationId": "pay-7"}}
        await until(lambda: complete in person.told, "the completion arrives")


@scenario("URL elicitation declined")
async def _() -> None:
    async with connected(ENDPOINT, decline) as person:
        equal(await person.call("open_url", id="pay-8"), "url: decline")


@scenario("sampling")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        equal(await person.call("summarize", text="a long story"), "toy-model: in short: a long story")
        equal(person.sampled[0].maxTokens, 50)


@scenario("roots")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        await person.listening()
        equal(await person.call("where"), "file:///home/ada=Ada file:///srv/caf%C3%A9=Café")


@scenario("progress and log")
async def _() -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    async with connected(ENDPOINT, accept()) as person:
        # A server of the modern era logs for who asks for it; Python's doesn't say that it does, so nobody can ask.
        silent = MODERN and not person.session.get_server_capabilities().logging
        if MODERN and not silent:
            await person.session.set_logging_level("info")
        equal(await person.call("count_slowly", progress, n=5, pause_ms=5, label="slow"), "counted to 5")
        equal(steps, [(i, 5, f"slow {i}") for i in range(1, 6)])
        logs = [n["params"] for n in person.told if n["method"] == "notifications/message"]
        steps_told = [{"level": "info", "logger": "slow", "data": f"at {i}"} for i in range(1, 6)]
        equal(logs, [] if silent else steps_told)


@scenario("cancellation reaches the server")
async def _() -> None:
    label = f"cancel-{os.getpid()}-{time.time_ns()}"
    async with connected(ENDPOINT, accept()) as person:
        counting = anyio.Event()

        async def progress(done: float, _total: float | None, _message: str | None) -> None:
            if done >= 2:
                counting.set()

        async def count() -> None:
            # The Python server answers a cancelled call with an error, the TypeScript server not at all.
            try:
                await person.call("count_slowly", progress, n=100_000, pause_ms=10, label=label)
            except McpError:
                return

        async with anyio.create_task_group() as calls:
            # This SDK has no cancel call: applications send the notification, with the id the session gives next.
            request_id = person.session._request_id
            calls.start_soon(count)
            await counting.wait()
            params = types.CancelledNotificationParams(requestId=request_id, reason="changed my mind")
            notice = types.CancelledNotification(params=params)
            await person.session.send_notification(types.ClientNotification(notice))

            async def stopped() -> bool:
                return await person.call("was_cancelled", label=label) == "true"

            await until(stopped, "the server stops")
            equal(await person.call("was_cancelled", label="another"), "false")
            calls.cancel_scope.cancel()


@scenario("two questions one after the other")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        equal(await person.call("ask_twice"), "ada:First? then ada:Second, after ada:First??")
        equal([question.message for question in person.asked], ["First?", "Second, after ada:First??"])


@scenario("several questions at once")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        equal(await person.call("ask_at_once", n=8), " ".join(f"ada:Question {i}?" for i in range(8)))


@scenario("question on the GET stream")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        await person.listening()
        equal(await person.call("ask_on_get", message="Here?"), "ada:Here?")


@scenario("resource updated and list changed on the GET stream")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        await person.listening()
        if MODERN:
            await person.session.subscribe_resource(AnyUrl("note://menu"))
        equal(await person.call("touch", uri="note://menu"), "touched")
        updated = {"method": "notifications/resources/updated", "params": {"uri": "note://menu"}}
        await until(lambda: updated in person.told, "resources/updated arrives")
        changed = "notifications/tools/list_changed"
        await until(lambda: any(notice["method"] == changed for notice in person.told), "tools/list_changed arrives")


@scenario("20 questions on one session")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        for i in range(20):
            equal(await person.call("ask", message=f"Q{i}"), f"ada:Q{i}")
        equal(len(person.asked), 20)


@scenario("20 calls at once on one session")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person, anyio.create_task_group() as calls:

        async def one(i: int) -> None:
            equal(await person.call("ask", message=f"Q{i}"), f"ada:Q{i}")

        for i in range(20):
            calls.start_soon(one, i)


@scenario("two users at once, each gets their own")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as ada, connected(ENDPOINT, signed("bob")) as bob:
        assert ada.session_id() != bob.session_id()

        async def one(person: Person, name: str, i: int) -> None:
            message = f"{name} {i}"
            tools = ["ask"] if MODERN else ["ask", "ask_on_get"]
            equal(await person.call(tools[i % len(tools)], message=message), f"{name}:{message}")

        people = {"ada": ada, "bob": bob}
        for person in people.values():
            await person.listening()
        async with anyio.create_task_group() as calls:
            for name, person in people.items():
                for i in range(10):
                    calls.start_soon(one, person, name, i)
        for name, person in people.items():
            equal(len(person.asked), 10)
            for question in person.asked:
                assert question.message.startswith(name), f"{name} saw {question.message}"


@scenario("a question that the client answers with an error")
async def _() -> None:
    async with connected(ENDPOINT, lambda _: types.ErrorData(code=-1, message="no screen")) as person:
        result = await person.result("book")
        assert result.isError
        # No modern server hears of the error, its era can't say it: the gateway ends the call, in its own words.
        assert MODERN or "no screen" in result.content[0].text, result.content
        equal(await person.call("echo", text="still here"), "still here")


@scenario("a question to a client without the capability")
async def _() -> None:
    async with connected(ENDPOINT, None) as person:
        assert (await person.result("book")).isError
        equal(await person.call("echo", text="still here"), "still here")


@scenario("state belongs to the session")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as ada, connected(ENDPOINT, accept()) as bob:
        equal([await person.call("counter") for person in (ada, ada, bob, ada)], ["1", "2", "1", "3"])


@scenario("session end")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        if not MODERN:
            equal(await person.call("counter"), "1")
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-session-id": str(person.session_id()),
            "mcp-protocol-version": person.version,
        }
    address = ENDPOINT.removesuffix("sse") + f"messages?sessionId={person.session_id()}" if OLDEST else ENDPOINT
    async with httpx.AsyncClient() as http:
        late = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}

        async def gone() -> bool:
            return (await http.post(address, json=late, headers=headers)).status_code == 404

        # The end of a stream has no answer that could be waited for.
        if OLDEST:
            await until(gone, "the session ends with its stream")
        assert await gone()
    if not MODERN:
        async with connected(ENDPOINT, accept()) as person:
            equal(await person.call("counter"), "1")


@scenario("the server forgets the session; the gateway goes on, or the client starts anew")
async def _() -> None:
    async with connected(ENDPOINT, signed("ada")) as person:
        seen = json.loads(await person.call("whoami"))
        headers = {"mcp-session-id": seen["mcp-session-id"], "mcp-protocol-version": person.version}
        async with httpx.AsyncClient() as http:
            equal((await http.delete(UPSTREAM, headers=headers)).status_code, 200)
        if THROUGH:
            # The gateway goes on with a new session there.
            equal(await person.call("counter"), "1")
            equal(await person.call("ask", message="Still?"), "ada:Still?")
        else:
            try:
                answer = await person.call("counter")
            except McpError as error:
                # What this SDK makes of a 404.
                equal((error.error.code, error.error.message), (32600, "Session terminated"))
            else:
                raise AssertionError(f"the forgotten session answered {answer}")
    async with connected(ENDPOINT, signed("ada")) as person:
        equal(await person.call("counter"), "1")
        equal(await person.call("ask", message="Back?"), "ada:Back?")


@scenario("headers that reach the server")
async def _() -> None:
    async with connected(ENDPOINT, accept(), headers={"authorization": "Bearer inbound-canary"}) as person:
        seen = json.loads(await person.call("whoami"))
        equal(seen["mcp-protocol-version"], "2026-07-28" if MODERN else person.version)
        equal(seen.get("mcp-method"), "tools/call" if MODERN else None)
        equal(seen["host"], urlsplit(UPSTREAM).netloc)
        if THROUGH:
            assert "authorization" not in seen, "the inbound credential went upstream"
            equal(seen["x-api-key"], "interop-upstream-key")
            assert seen.get("mcp-session-id") != person.session_id()
        else:
            equal(seen["authorization"], "Bearer inbound-canary")
            equal(seen["mcp-session-id"], person.session_id())


class Anything(BaseModel, extra="allow"):
    """A result as it came, with unknown fields and their order."""


@scenario("lists, reads and errors are the server's own")
async def _() -> None:
    requests: list[Any] = [
        types.ListToolsRequest(),
        types.ListResourcesRequest(),
        types.ListResourceTemplatesRequest(),
        types.ListPromptsRequest(),
        types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=AnyUrl("note://menu"))),
        types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=AnyUrl("note://none"))),
        types.CallToolRequest(params=types.CallToolRequestParams(name="no_such_tool", arguments={})),
        types.CallToolRequest(params=types.CallToolRequestParams(name="echo", arguments={"text": 7})),
        types.CallToolRequest(params=types.CallToolRequestParams(name="echo", arguments={"text": 'ünï ☕ \u2028 "q"'})),
        types.PingRequest(),
    ]

    async def answers(url: str) -> list[str]:
        async with connected(url, accept()) as person:
            lines = [repr(person.session.get_server_capabilities())]
            for request in requests:
                try:
                    answer = await person.session.send_request(types.ClientRequest(request), Anything)
                except McpError as error:
                    answer = error.error
                lines.append(f"{request.method} {json.dumps(answer.model_dump(mode='json'))}")
            return lines

    for through, direct in zip(await answers(ENDPOINT), await answers(UPSTREAM), strict=True):
        equal(through, direct)


@scenario("large texts")
async def _() -> None:
    text = "größer – " * 40_000
    async with connected(ENDPOINT, accept()) as person:
        equal(await person.call("echo", text=text) == text, True)


@scenario("logging level and ping")
async def _() -> None:
    async with connected(ENDPOINT, accept()) as person:
        await person.session.send_ping()
        if person.session.get_server_capabilities().logging:
            await person.session.set_logging_level("debug")


def speaks(version: str, chosen: str) -> Scenario:
    async def run() -> None:
        async with connected(ENDPOINT, signed("ada"), version=version) as person:
            equal(person.version, chosen)
            if MODERN:
                equal(await person.call("echo", text="Old?"), "Old?")
                return
            # 2025-03-26 knows no such header; this SDK sends it all the same, another client of the server need not.
            header = json.loads(await person.call("whoami")).get("mcp-protocol-version")
            assert header == chosen or (header is None and chosen <= "2025-03-26"), header
            equal(await person.call("ask", message="Old?"), "ada:Old?")
            await person.listening()
            equal(await person.call("ask_on_get", message="Older?"), "ada:Older?")

    return run


for _version in (*(["2024-11-05"] if OLDEST else []), "2025-03-26", "2025-06-18", "2025-11-25"):
    scenario(f"protocol version {_version}")(speaks(_version, _version))
scenario("an unknown protocol version gets the server's choice")(speaks("1999-01-01", "2025-11-25"))


#: What a server of the modern era has not.
OF_LEGACY = {
    "question on the GET stream",
    "state belongs to the session",
    "the server forgets the session; the gateway goes on, or the client starts anew",
    "lists, reads and errors are the server's own",
}
if MODERN:
    for _name in OF_LEGACY:
        del scenarios[_name]

warnings.simplefilter("ignore", DeprecationWarning)
sys.exit(anyio.run(run_scenarios, LABEL, PATIENCE * 2))
