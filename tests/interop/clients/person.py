"""A person with the official Python SDK 1.x, of the legacy era."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import mcp.types as types
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import FileUrl

from scenarios import PATIENCE

ROOTS = [
    types.Root(uri=FileUrl("file:///home/ada"), name="Ada"),
    types.Root(uri=FileUrl("file:///srv/caf%C3%A9"), name="Café"),
]

Said = types.ElicitResult | types.ErrorData
Answer = Callable[[types.ElicitRequestParams], Said | Awaitable[Said]]


class Person:
    """An SDK client that keeps what it was asked and told, and answers with `answer(params)`."""

    session: ClientSession
    version: str
    session_id: Callable[[], str | None]
    #: Whether its one stream is its session.
    oldest = False

    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.asked: list[types.ElicitRequestParams] = []
        self.sampled: list[types.CreateMessageRequestParams] = []
        self.told: list[dict[str, Any]] = []
        self.get_stream_open = anyio.Event()

    async def on_elicit(self, _: Any, params: types.ElicitRequestParams) -> Said:
        self.asked.append(params)
        said = self.answer(params)
        return await said if isinstance(said, Awaitable) else said

    async def on_sampling(self, _: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.sampled.append(params)
        text = f"in short: {params.messages[0].content.text}"
        return types.CreateMessageResult(
            model="toy-model", role="assistant", stopReason="endTurn", content=types.TextContent(type="text", text=text)
        )

    async def on_roots(self, _: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=ROOTS)

    async def on_message(self, message: Any) -> None:
        if isinstance(message, types.ServerNotification):
            notice = message.root.model_dump(mode="json", exclude_none=True)
            notice.pop("jsonrpc", None)  # an unknown field to the models of this SDK, which keep it
            self.told.append(notice)

    async def on_response(self, response: httpx.Response) -> None:
        if response.request.method == "GET" and response.is_success:
            self.get_stream_open.set()

    async def listening(self) -> None:
        with anyio.fail_after(PATIENCE):
            if self.oldest:
                # The one stream is open from the start; what takes its time is the gateway's at the server.
                await self.session.send_ping()
                return
            await self.get_stream_open.wait()

    async def result(self, name: str, **arguments: Any) -> types.CallToolResult:
        return await self.session.call_tool(name, arguments)

    async def call(self, name: str, progress: Any = None, **arguments: Any) -> str:
        """Calls a tool and gives the text of its answer."""
        result = await self.session.call_tool(name, arguments, progress_callback=progress)
        assert not result.isError, f"{name} answered an error: {result.content}"
        return result.content[0].text

    async def initialize(self, version: str | None) -> None:
        """`version` offers that revision instead of the SDK's newest, which takes the SDK's lower level."""
        if version is None:
            self.version = str((await self.session.initialize()).protocolVersion)
            return
        capabilities = types.ClientCapabilities(
            elicitation=types.ElicitationCapability(form=types.FormElicitationCapability()),
            sampling=types.SamplingCapability(),
            roots=types.RootsCapability(listChanged=True),
        )
        client = types.Implementation(name="interop-py-client", version="1.0.0")
        params = types.InitializeRequestParams(protocolVersion=version, capabilities=capabilities, clientInfo=client)
        request = types.ClientRequest(types.InitializeRequest(params=params))
        self.version = str((await self.session.send_request(request, types.InitializeResult)).protocolVersion)
        await self.session.send_notification(types.ClientNotification(types.InitializedNotification()))


@asynccontextmanager
async def connected(
    url: str,
    answer: Answer | None,
    version: str | None = None,
    headers: dict[str, str] | None = None,
) -> AsyncIterator[Person]:
    """A person with a session, which ends with a DELETE, or by HTTP+SSE with its stream where `url` ends in `/sse`;
    without `answer` it declares no capabilities."""
    person = Person(answer)
    person.oldest = url.endswith("/sse")
    able = answer is not None
    transport = one_stream if person.oldest else streamable
    async with transport(url, person, headers) as (read, write):
        async with ClientSession(
            read,
            write,
            elicitation_callback=person.on_elicit if able else None,
            sampling_callback=person.on_sampling if able else None,
            list_roots_callback=person.on_roots if able else None,
            message_handler=person.on_message,
            client_info=types.Implementation(name="interop-py-client", version="1.0.0"),
        ) as session:
            person.session = session
            await person.initialize(version)
            yield person


@asynccontextmanager
async def streamable(url: str, person: Person, headers: dict[str, str] | None) -> AsyncIterator[tuple[Any, Any]]:
    hooks = {"response": [person.on_response]}
    async with httpx.AsyncClient(timeout=httpx.Timeout(PATIENCE), headers=headers, event_hooks=hooks) as http:
        async with streamable_http_client(url, http_client=http) as (read, write, session_id):
            person.session_id = session_id
            yield read, write


@asynccontextmanager
async def one_stream(url: str, person: Person, headers: dict[str, str] | None) -> AsyncIterator[tuple[Any, Any]]:
    def opened(session_id: str) -> None:
        person.session_id = lambda: session_id

    async with sse_client(url, headers, on_session_created=opened) as (read, write):
        yield read, write


def accept(**content: Any) -> Answer:
    return lambda _: types.ElicitResult(action="accept", content=content)


def decline(_: Any) -> types.ElicitResult:
    return types.ElicitResult(action="decline")


def cancel(_: Any) -> types.ElicitResult:
    return types.ElicitResult(action="cancel")


def signed(name: str) -> Answer:
    """Answers a question with its own message and the person's name: an answer that went astray shows."""
    return lambda params: types.ElicitResult(action="accept", content={"answer": f"{name}:{params.message}"})
