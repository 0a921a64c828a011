"""The asking server on the official Python SDK (FastMCP). Its tools are described in README.md;
`server.mjs` has the same ones with the same answers, so that one list of expectations judges both.

Usage: python server.py [PORT]     (default 0: a free port, printed)
"""

import json
import socket
import sys
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequestURLParams, ElicitResult, SamplingMessage, TextContent
from pydantic import AnyUrl, BaseModel, Field

mcp = FastMCP("interop-py", log_level="WARNING")

#: Labels of `count_slowly` runs that ended by cancellation; read by `was_cancelled`.
cancelled: set[str] = set()

#: How often `pay_first` has sent each id away.
unpaid: dict[str, int] = {}

#: The labels that `remove` was called with.
removed: set[str] = set()

#: `counter` per session.
counts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

BOOKING_FORM = {
    "type": "object",
    "properties": {
        "party_size": {"type": "integer", "title": "Party size", "minimum": 1, "maximum": 12},
        "seating": {"type": "string", "title": "Seating", "enum": ["inside", "terrace"]},
        "note": {"type": "string", "title": "Note"},
    },
    "required": ["party_size", "seating"],
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


class YesNo(BaseModel):
    sure: bool = Field(title="Are you sure?")


def word(result: ElicitResult) -> str:
    return str((result.content or {})["answer"]) if result.action == "accept" else result.action


async def ask_word(ctx: Context, message: str) -> str:
    """Asks on the stream of the call that is being served."""
    return word(await ctx.session.elicit_form(message, ONE_WORD, related_request_id=ctx.request_id))


@mcp.tool()
async def echo(text: str) -> str:
    """Says the text back"""
    return text


@mcp.tool()
async def counter(ctx: Context) -> str:
    """Counts the calls of this session"""
    counts[ctx.session] = counts.get(ctx.session, 0) + 1
    return str(counts[ctx.session])


@mcp.tool()
async def whoami(ctx: Context) -> str:
    """The request headers as they arrived"""
    return json.dumps(dict(sorted(ctx.request_context.request.headers.items())))


@mcp.tool()
async def book(ctx: Context) -> str:
    """Books a table; asks for party size and seating"""
    result = await ctx.session.elicit_form("How many, and where?", BOOKING_FORM, related_request_id=ctx.request_id)
    if result.action != "accept":
        return f"no booking: {result.action}"
    return f"booked: {result.content['party_size']} {result.content['seating']} {result.content.get('note', '-')}"


@mcp.tool()
async def book_table(ctx: Context) -> str:
    """Books a table; asks for guests and a name"""
    message = "How many people, and under which name?"
    result = await ctx.session.elicit_form(message, TABLE_FORM, related_request_id=ctx.request_id)
    if result.action != "accept":
        return f"no table: {result.action}"
    return f"table: {result.content['guests']} {result.content.get('name', '-')}"


@mcp.tool()
async def sign_in(ctx: Context) -> str:
    """Asks for a password in a form, which no server may"""
    result = await ctx.session.elicit_form("Please sign in", LOGIN_FORM, related_request_id=ctx.request_id)
    return f"sign in: {result.action}"


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
async def confirm(ctx: Context) -> str:
    """Asks yes or no"""
    result = await ctx.elicit("Cancel the booking?", YesNo)
    if result.action == "accept":
        return "accepted: yes" if result.data.sure else "accepted: no"
    return "declined" if result.action == "decline" else "cancelled"


@mcp.tool()
async def open_url(id: str, ctx: Context) -> str:
    """Sends the user to a web page"""
    result = await ctx.elicit_url("Please pay", f"https://pay.example/{id}?a=1&b=%20", id)
    if result.action == "accept":
        await ctx.session.send_elicit_complete(id, related_request_id=ctx.request_id)
    return f"url: {result.action}"


@mcp.tool()
async def pay_first(id: str) -> str:
    """Refuses twice until a web page was visited"""
    times = unpaid[id] = unpaid.get(id, 0) + 1
    if times > 2:
        return f"paid after {times - 1} refusals"
    url = f"https://pay.example/{id}?a=1&b=%20"
    raise UrlElicitationRequiredError(
        [ElicitRequestURLParams(message="Please pay", url=url, elicitationId=f"{id}-{times}")]
    )


@mcp.tool()
async def summarize(text: str, ctx: Context) -> str:
    """Lets the client's model write"""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    result = await ctx.session.create_message([message], max_tokens=50, related_request_id=ctx.request_id)
    return f"{result.model}: {result.content.text}"


@mcp.tool()
async def where(ctx: Context) -> str:
    """Lists the client's roots"""
    roots = (await ctx.session.list_roots()).roots
    return " ".join(f"{root.uri}={root.name}" for root in roots)


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
    """Whether a count_slowly of any session was cancelled"""
    return "true" if label in cancelled else "false"


@mcp.tool()
async def ask_twice(ctx: Context) -> str:
    """Asks one question after the other"""
    first = await ask_word(ctx, "First?")
    second = await ask_word(ctx, f"Second, after {first}?")
    return f"{first} then {second}"


@mcp.tool()
async def ask_at_once(n: int, ctx: Context) -> str:
    """Asks several questions at the same time"""
    answers: list[Any] = [None] * n

    async def question(i: int) -> None:
        answers[i] = await ask_word(ctx, f"Question {i}?")

    async with anyio.create_task_group() as questions:
        for i in range(n):
            questions.start_soon(question, i)
    return " ".join(answers)


@mcp.tool()
async def ask(message: str, ctx: Context) -> str:
    """Asks the given question"""
    return await ask_word(ctx, message)


@mcp.tool()
async def ask_midway(message: str, ctx: Context) -> str:
    """Reports progress, asks, and reports again"""
    await ctx.log("info", "step 1", logger_name="midway")
    await ctx.report_progress(1, 2)
    answer = await ask_word(ctx, message)
    await ctx.log("info", "step 2", logger_name="midway")
    await ctx.report_progress(2, 2)
    return answer


@mcp.tool()
async def ask_then_count(label: str, ctx: Context) -> str:
    """Asks, and counts for ever"""
    await ask_word(ctx, "Shall I?")
    try:
        while True:
            await ctx.log("info", "counting")
            await anyio.sleep(0.01)
    except anyio.get_cancelled_exc_class():
        cancelled.add(label)
        raise


@mcp.tool()
async def ask_on_get(message: str, ctx: Context) -> str:
    """Asks on the stream that belongs to no call"""
    return word(await ctx.session.elicit_form(message, ONE_WORD))


@mcp.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Says that a resource and the list of tools changed"""
    await ctx.session.send_resource_updated(AnyUrl(uri))
    await ctx.session.send_tool_list_changed()
    return "touched"


@mcp.resource("note://menu", name="menu", mime_type="text/plain")
def menu() -> str:
    return "Soup, £4 – naïve café ☕"


@mcp.resource("note://ask/{what}", name="asked", mime_type="text/plain")
async def asked_resource(what: str, ctx: Context) -> str:
    return await ask_word(ctx, f"What of {what}?")


@mcp.prompt(name="asked", description="Asks what to write")
async def asked_prompt(ctx: Context) -> str:
    return await ask_word(ctx, "Write what?")


def main() -> None:
    if sys.argv[1:2] == ["stdio"]:
        return mcp.run("stdio")
    if sys.argv[1:2] == ["sse"]:
        return serve(mcp.sse_app(), "/sse", 0)
    serve(mcp.streamable_http_app(), "/mcp", int(sys.argv[1]) if len(sys.argv) > 1 else 0)


def serve(app: Any, path: str, port: int) -> None:
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
