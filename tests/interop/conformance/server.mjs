// A server of the legacy era, on the official TypeScript SDK, that passes everything the conformance suite asks of a
// 2025-11-25 server. It also offers what the scenarios of 2026-07-28 call (asking.mjs), for the runs across eras.
//
// The suite calls tools, prompts and resources by fixed names and looks at what they answer; those names and values
// are the suite's, see the descriptions that `conformance server --scenario NAME` prints. Streams are resumable, so
// that the suite's polling scenario closes a stream in the middle of a call and gets the answer after it comes back.
//
// Usage: node server.mjs [PORT]     (default 0: a free port, printed)
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { serveSessions } from '../servers/sessions.mjs';
import { registerAsking } from './asking.mjs';
import { DEFAULTS_FORM, ENUMS_FORM, SCHEMA_2020_12, USER_FORM, pause, registerPlain, text } from './plain.mjs';

function newServer() {
  const mcp = new McpServer(
    { name: 'contraflow-conformance', version: '1.0.0' },
    { capabilities: { logging: {}, completions: {}, resources: { subscribe: true }, tools: {}, prompts: {} } },
  );
  registerPlain(mcp, {
    completable,
    ResourceTemplate,
    argsOf: (shape) => shape,
    notify: (extra, notification) => extra.sendNotification(notification),
    tokenOf: (extra) => extra._meta?.progressToken,
  });
  registerTools(mcp);
  registerResources(mcp.server);
  registerAsking(mcp);
  return mcp;
}

function registerTools(mcp) {
  const { server } = mcp;
  const tool = (name, description, inputSchema, content) =>
    mcp.registerTool(name, { description, inputSchema }, async (args, extra) => ({ content: await content(args, extra) }));
  const elicit = (extra, message, requestedSchema) =>
    server.elicitInput({ message, requestedSchema }, { relatedRequestId: extra.requestId });

  tool('test_sampling', 'Asks the model', { prompt: z.string() }, async ({ prompt }, extra) => {
    const params = { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 };
    const { content } = await server.createMessage(params, { relatedRequestId: extra.requestId });
    return [text(`LLM response: ${content.text}`)];
  });

  tool('test_elicitation', 'Asks the user', { message: z.string() }, async ({ message }, extra) => {
    const { action, content } = await elicit(extra, message, USER_FORM);
    return [text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`)];
  });

  for (const [name, form] of [['sep1034_defaults', DEFAULTS_FORM], ['sep1330_enums', ENUMS_FORM]]) {
    tool(`test_elicitation_${name}`, 'Asks the user with every kind of field', {}, async (_, extra) => {
      const { action, content } = await elicit(extra, 'Please fill in the form', form);
      return [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)];
    });
  }

  tool('test_reconnection', 'Closes its stream in the middle and answers after the client is back', {}, async (_, extra) => {
    extra.closeSSEStream?.();
    await pause(100);
    return [text('Answered after the stream was closed.')];
  });

  tool('json_schema_2020_12_tool', 'Tool with JSON Schema 2020-12 features', {}, () => [text('ok')]);

  // The SDK builds input schemas from its own types, which cannot say all of 2020-12: put this one in as it is.
  const listTools = server._requestHandlers.get('tools/list');
  server.setRequestHandler(ListToolsRequestSchema, async (request, extra) => {
    const { tools } = await listTools(request, extra);
    return {
      tools: tools.map((each) =>
        each.name === 'json_schema_2020_12_tool' ? { ...each, inputSchema: SCHEMA_2020_12 } : each,
      ),
    };
  });
}

function registerResources(server) {
  // The SDK answers a resource that is not there with another code than its era names, and without the uri.
  const read = server._requestHandlers.get('resources/read');
  server.setRequestHandler(ReadResourceRequestSchema, (request, extra) => {
    const { uri } = request.params;
    if (uri.startsWith('test://nonexistent')) throw new McpError(-32002, 'Resource not found', { uri });
    return read(request, extra);
  });

  const subscribed = new Set();
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscribed.add(params.uri);
    return {};
  });
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscribed.delete(params.uri);
    return {};
  });
}

/** Keeps the events of one session; an event id is `<stream>_<number>`, numbered over the whole session. */
function newEventStore() {
  const events = [];
  return {
    async storeEvent(stream, message) {
      events.push({ stream, message });
      return `${stream}_${events.length}`;
    },
    async getStreamIdForEventId(id) {
      return events[Number(id.split('_').pop()) - 1]?.stream;
    },
    async replayEventsAfter(id, { send }) {
      const number = Number(id.split('_').pop());
      const stream = events[number - 1].stream;
      for (let i = number; i < events.length; i++) {
        const { stream: of, message } = events[i];
        // The first event of a stream has no message: it only gave the client an id to come back with.
        if (of === stream && 'jsonrpc' in message) await send(`${stream}_${i + 1}`, message);
      }
      return stream;
    },
  };
}

serveSessions({ port: Number(process.argv[2] ?? 0), newServer, newEventStore, retryMs: 50 });
