"""The asking server on the official Python SDK 2.x: the tools of `server.py`, as far as the modern era can have them
(README.md), with the same answers. What has to be asked ends the request with `input_required`.

The SDK serves both eras at one endpoint; who offers it the modern one gets that.

Usage: python modern_server.py [PORT]     (default 0: a free port, printed)
"""

import json
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

mcp = MCPServer("interop-py2", version="1.0.0", log_level="WARNING")

#: Labels of `count_slowly` runs that ended by cancellation; read by `was_cancelled`.
cancelled: set[str] = set()
#: How often `pay_first` has sent each id away.
unpaid: dict[str, int] = {}
#: The labels that `remove` was called with.
removed: set[str] = set()

BOOKING_FORM = {
    "type": "object",
    "properties": {
        "party_size": {"type": "integer", "title": "Party size", "minimum": 1, "maximum": 12},
        "seating": {"type": "string", "title": "Seating", "enum": ["inside", "terrace"]},
        "note": {"type": "string", "title": "Note"},
    },
    "required": ["party_size", "seating"],
}

YES_NO = {
    "type": "object",
    "properties": {"sure": {"type": "boolean", "title": "Are you sure?"}},
    "required": ["sure"],
}

TABLE_FORM = {
    "type": "object",
    "properties": {
        "guests": {"type": "integer", "title": "People", "minimum": 1},
        "name": {"type": "string", "title": "Name"},
    },
    "required": ["guests"],
}

LOGIN_FORM = {
    "type": "object",
    "properties": {"user": {"type": "string"}, "password": {"type": "string", "title": "Password"}},
    "required": ["user", "password"],
}

ONE_WORD = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Your answer"}},
    "required": ["answer"],
}


def elicit(message: str, schema: dict[str, Any] = ONE_WORD) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def page(id: str) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestURLParams(message="Please pay", url=f"https://pay.example/{id}?a=1&b=%20"))


def ask(ctx: Context, questions: dict[str, InputRequest]) -> InputRequiredResult | None:
    """The result that asks what is not answered yet, or `None` when all is."""
    answers = ctx.input_responses or {}
    missing = {key: question for key, question in questions.items() if key not in answers}
    return InputRequiredResult(input_requests=missing) if missing else None


def answer(ctx: Context, key: str) -> Any:
    return (ctx.input_responses or {})[key]


def word(result: ElicitResult) -> str:
    return str((result.content or {})["answer"]) if result.action == "accept" else result.action


@mcp.tool()
async def echo(text: str) -> str:
    """Says the text back"""
    return text


@mcp.tool()
async def whoami(ctx: Context) -> str:
    """The request headers as they arrived"""
    return json.dumps(dict(sorted((ctx.headers or {}).items())))


@mcp.tool()
async def book(ctx: Context) -> str | InputRequiredResult:
    """Books a table; asks for party size and seating"""
    if asked := ask(ctx, {"booking": elicit("How many, and where?", BOOKING_FORM)}):
        return asked
    result = answer(ctx, "booking")
    if result.action != "accept":
        return f"no booking: {result.action}"
    return f"booked: {result.content['party_size']} {result.content['seating']} {result.content.get('note', '-')}"


@mcp.tool()
async def book_table(ctx: Context) -> str | InputRequiredResult:
    """Books a table; asks for guests and a name"""
    if asked := ask(ctx, {"table": elicit("How many people, and under which name?", TABLE_FORM)}):
        return asked
    result = answer(ctx, "table")
    if result.action != "accept":
        return f"no table: {result.action}"
    return f"table: {result.content['guests']} {result.content.get('name', '-')}"


@mcp.tool()
async def sign_in(ctx: Context) -> str | InputRequiredResult:
    """Asks for a password in a form, which no server may"""
    return ask(ctx, {"login": elicit("Please sign in", LOGIN_FORM)}) or f"sign in: {answer(ctx, 'login').action}"


@mcp.tool()
async def remove(label: str) -> str:
    """Removes something"""
    removed.add(label)
    return "removed"


@mcp.tool()
async def was_removed(label: str) -> str:
    """Whether it was removed"""
    return "true" if label in removed else "false"


@mcp.tool()
async def confirm(ctx: Context) -> str | InputRequiredResult:
    """Asks yes or no"""
    if asked := ask(ctx, {"sure": elicit("Cancel the booking?", YES_NO)}):
        return asked
    result = answer(ctx, "sure")
    if result.action == "accept":
        return "accepted: yes" if result.content["sure"] else "accepted: no"
    return "declined" if result.action == "decline" else "cancelled"


@mcp.tool()
async def open_url(id: str, ctx: Context) -> str | InputRequiredResult:
    """Sends the user to a web page"""
    return ask(ctx, {"page": page(id)}) or f"url: {answer(ctx, 'page').action}"


@mcp.tool()
async def pay_first(id: str) -> str | InputRequiredResult:
    """Refuses twice until a web page was visited"""
    times = unpaid[id] = unpaid.get(id, 0) + 1
    return f"paid after {times - 1} refusals" if times > 2 else InputRequiredResult(input_requests={"page": page(id)})


@mcp.tool()
async def summarize(text: str, ctx: Context) -> str | InputRequiredResult:
    """Lets the client's model write"""
    message = SamplingMessage(role="user", content=TextContent(text=text))
    question = CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=50))
    if asked := ask(ctx, {"summary": question}):
        return asked
    result = answer(ctx, "summary")
    return f"{result.model}: {result.content.text}"


@mcp.tool()
async def where(ctx: Context) -> str | InputRequiredResult:
    """Lists the client's roots"""
    if asked := ask(ctx, {"roots": ListRootsRequest()}):
        return asked
    return " ".join(f"{root.uri}={root.name}" for root in answer(ctx, "roots").roots)


@mcp.tool()
async def count_slowly(n: int, pause_ms: float, label: str, ctx: Context) -> str:
    """Counts with progress and log; can be cancelled"""
    try:
        for i in range(1, n + 1):
            await anyio.sleep(pause_ms / 1000)
            await ctx.report_progress(i, n, f"{label} {i}")
            await ctx.log("info", f"at {i}", logger_name=label)
    except anyio.get_cancelled_exc_class():
        cancelled.add(label)
        raise
    return f"counted to {n}"


@mcp.tool()
async def was_cancelled(label: str) -> str:
    """Whether a count_slowly was cancelled"""
    return "true" if label in cancelled else "false"


@mcp.tool()
async def ask_twice(ctx: Context) -> str | InputRequiredResult:
    """Asks one question after the other"""
    if ctx.request_state is None:
        if asked := ask(ctx, {"first": elicit("First?")}):
            return asked
        first = word(answer(ctx, "first"))
    else:
        first = ctx.request_state
        if not ask(ctx, {"second": elicit("")}):
            return f"{first} then {word(answer(ctx, 'second'))}"
    second = {"second": elicit(f"Second, after {first}?")}
    return InputRequiredResult(input_requests=second, request_state=first)


@mcp.tool()
async def ask_at_once(n: int, ctx: Context) -> str | InputRequiredResult:
    """Asks several questions at the same time"""
    asked = ask(ctx, {f"q{i}": elicit(f"Question {i}?") for i in range(n)})
    return asked or " ".join(word(answer(ctx, f"q{i}")) for i in range(n))


@mcp.tool(name="ask")
async def ask_tool(message: str, ctx: Context) -> str | InputRequiredResult:
    """Asks the given question"""
    return ask(ctx, {"answer": elicit(message)}) or word(answer(ctx, "answer"))


@mcp.tool()
async def ask_midway(message: str, ctx: Context) -> str | InputRequiredResult:
    """Reports progress, asks, and reports again"""
    asked = ask(ctx, {"answer": elicit(message)})
    step = 1 if asked else 2
    await ctx.log("info", f"step {step}", logger_name="midway")
    await ctx.report_progress(step, 2)
    return asked or word(answer(ctx, "answer"))


@mcp.tool()
async def ask_then_count(label: str, ctx: Context) -> str | InputRequiredResult:
    """Asks, and counts for ever"""
    if asked := ask(ctx, {"answer": elicit("Shall I?")}):
        return asked
    try:
        while True:
            await ctx.log("info", "counting")
            await anyio.sleep(0.01)
    except anyio.get_cancelled_exc_class():
        cancelled.add(label)
        raise


@mcp.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Says that a resource and the list of tools changed"""
    await ctx.notify_resource_updated(uri)
    await ctx.notify_tools_changed()
    return "touched"


@mcp.resource("note://menu", name="menu", mime_type="text/plain")
def menu() -> str:
    return "Soup, £4 – naïve café ☕"


@mcp.resource("note://ask/{what}", name="asked", mime_type="text/plain")
async def asked_resource(what: str, ctx: Context) -> str | InputRequiredResult:
    return ask(ctx, {"what": elicit(f"What of {what}?")}) or word(answer(ctx, "what"))


@mcp.prompt(name="asked", description="Asks what to write")
async def asked_prompt(ctx: Context) -> str | InputRequiredResult:
    return ask(ctx, {"what": elicit("Write what?")}) or word(answer(ctx, "what"))


def main() -> None:
    if sys.argv[1:2] == ["stdio"]:
        return mcp.run("stdio")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(mcp.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
