"""A person with the official Python SDK 2.x, of the modern era."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from scenarios import PATIENCE

#: The revision that it speaks.
VERSION = "2026-07-28"

ROOTS = [
    types.Root(uri="file:///home/ada", name="Ada"),
    types.Root(uri="file:///srv/caf%C3%A9", name="Café"),
]

Said = types.ElicitResult | types.ErrorData
Answer = Callable[[types.ElicitRequestParams], Said | Awaitable[Said]]


class Person:
    """An SDK client that keeps what it was asked and told, and answers with `answer(params)`."""

    client: Client

    def __init__(self, answer: Answer | None, name: str) -> None:
        self.answer = answer
        self.name = name
        self.asked: list[types.ElicitRequestParams] = []
        self.sampled: list[types.CreateMessageRequestParams] = []
        self.logs: list[types.LoggingMessageNotificationParams] = []

    async def on_elicit(self, _: Any, params: types.ElicitRequestParams) -> Said:
        self.asked.append(params)
        assert self.answer
        said = self.answer(params)
        return await said if isinstance(said, Awaitable) else said

    async def on_sampling(self, _: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.sampled.append(params)
        text = f"in short: {params.messages[0].content.text}"
        return types.CreateMessageResult(
            model="toy-model", role="assistant", stop_reason="endTurn", content=types.TextContent(text=text)
        )

    async def on_roots(self, _: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=ROOTS)

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logs.append(params)

    async def result(self, name: str, **arguments: Any) -> types.CallToolResult:
        return await self.client.call_tool(name, arguments)

    async def call(self, name: str, progress: Any = None, level: str | None = None, **arguments: Any) -> str:
        """Calls a tool and gives the text of its answer."""
        meta = {"io.modelcontextprotocol/logLevel": level} if level else None
        result = await self.client.call_tool(name, arguments, progress_callback=progress, meta=meta)
        assert not result.is_error, f"{name} answered an error: {result.content}"
        return result.content[0].text


@asynccontextmanager
async def connected(
    url: str,
    answer: Answer | None,
    name: str = "ada",
    mode: str = VERSION,
    headers: dict[str, str] | None = None,
) -> AsyncIterator[Person]:
    """A person with a client, and their key, where they have one; without `answer` it declares no capabilities."""
    person = Person(answer, name)
    able = answer is not None
    key = os.environ.get("KEY_" + name.upper())
    sent = ({"authorization": f"Bearer {key}"} if key else {}) | (headers or {})
    async with httpx2.AsyncClient(headers=sent, timeout=PATIENCE * 3) as http:
        async with Client(
            streamable_http_client(url, http_client=http),
            elicitation_callback=person.on_elicit if able else None,
            sampling_callback=person.on_sampling if able else None,
            list_roots_callback=person.on_roots if able else None,
            logging_callback=person.on_log,
            client_info=types.Implementation(name="interop-py2-client", version="1.0.0"),
            mode=mode,
            read_timeout_seconds=PATIENCE * 3,
        ) as client:
            person.client = client
            yield person


def accept(**content: Any) -> Answer:
    return lambda _: types.ElicitResult(action="accept", content=content)


def consent(_: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept")


def decline(_: Any) -> types.ElicitResult:
    return types.ElicitResult(action="decline")


def cancel(_: Any) -> types.ElicitResult:
    return types.ElicitResult(action="cancel")


def signed(name: str) -> Answer:
    """Answers a question with its own message and the person's name: an answer that went astray shows."""
    return lambda params: types.ElicitResult(action="accept", content={"answer": f"{name}:{params.message}"})
