// A server on the official TypeScript SDK that passes everything the conformance suite asks of a 2025-11-25 server.
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
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { serveSessions } from '../servers/sessions.mjs';

// One red pixel, and a WAV header with one silent sample.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACAAA==';

const text = (value) => ({ type: 'text', text: value });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const DEFAULTS_FORM = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
  required: [],
};

const options = ['option1', 'option2', 'option3'];
const titled = (kind) => ['First', 'Second', 'Third'].map((nth, i) => ({ const: `value${i + 1}`, title: `${nth} ${kind}` }));
const ENUMS_FORM = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: options },
    titledSingle: { type: 'string', oneOf: titled('Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
  },
  required: [],
};

const USER_FORM = {
  type: 'object',
  properties: {
    username: { type: 'string', description: "User's response" },
    email: { type: 'string', description: "User's email address" },
  },
  required: ['username', 'email'],
};

/** A schema with the 2020-12 keywords that typed models lose on the way. */
const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

function newServer() {
  const mcp = new McpServer(
    { name: 'contraflow-conformance', version: '1.0.0' },
    { capabilities: { logging: {}, completions: {}, resources: { subscribe: true }, tools: {}, prompts: {} } },
  );
  registerTools(mcp);
  registerResources(mcp);
  registerPrompts(mcp);
  return mcp;
}

function registerTools(mcp) {
  const { server } = mcp;
  const tool = (name, description, inputSchema, content) =>
    mcp.registerTool(name, { description, inputSchema }, async (args, extra) => ({ content: await content(args, extra) }));
  const elicit = (extra, message, requestedSchema) =>
    server.elicitInput({ message, requestedSchema }, { relatedRequestId: extra.requestId });

  tool('test_simple_text', 'Answers a text', {}, () => [text('This is a simple text response for testing.')]);
  tool('test_image_content', 'Answers an image', {}, () => [image]);
  tool('test_audio_content', 'Answers a sound', {}, () => [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]);
  tool('test_embedded_resource', 'Answers a resource', {}, () => [
    {
      type: 'resource',
      resource: {
        uri: 'test://embedded-resource',
        mimeType: 'text/plain',
        text: 'This is an embedded resource content.',
      },
    },
  ]);
  tool('test_multiple_content_types', 'Answers a text, an image and a resource', {}, () => [
    text('Multiple content types test:'),
    image,
    {
      type: 'resource',
      resource: {
        uri: 'test://mixed-content-resource',
        mimeType: 'application/json',
        text: '{"test":"data","value":123}',
      },
    },
  ]);

  tool('test_tool_with_logging', 'Logs three times', {}, async (_, extra) => {
    const log = (data) => extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
    await log('Tool execution started');
    await pause(50);
    await log('Tool processing data');
    await pause(50);
    await log('Tool execution completed');
    return [text('Logged three times.')];
  });

  tool('test_error_handling', 'Always fails', {}, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });

  tool('test_tool_with_progress', 'Reports progress', {}, async (_, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
        await extra.sendNotification({ method: 'notifications/progress', params });
      }
      await pause(50);
    }
    return [text(`Progress token: ${progressToken}`)];
  });

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

function registerResources(mcp) {
  const subscribed = new Set();
  const resource = (name, uri, mimeType, contents) =>
    mcp.registerResource(name, uri, { description: `The resource ${name}`, mimeType }, ({ href }) => ({
      contents: [{ uri: href, mimeType, ...contents }],
    }));

  resource('static-text', 'test://static-text', 'text/plain', {
    text: 'This is the content of the static text resource.',
  });
  resource('static-binary', 'test://static-binary', 'image/png', { blob: PNG });
  resource('watched', 'test://watched-resource', 'text/plain', { text: 'Watched.' });

  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  const mimeType = 'application/json';
  mcp.registerResource('template', template, { description: 'Data by id', mimeType }, ({ href }, { id }) => ({
    contents: [
      { uri: href, mimeType, text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) },
    ],
  }));

  mcp.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscribed.add(params.uri);
    return {};
  });
  mcp.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscribed.delete(params.uri);
    return {};
  });
}

function registerPrompts(mcp) {
  const user = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
  const prompt = (name, argsSchema, run) =>
    mcp.registerPrompt(name, { description: `The prompt ${name}`, ...(argsSchema && { argsSchema }) }, run);

  prompt('test_simple_prompt', undefined, () => user(text('This is a simple prompt for testing.')));
  const places = (value) => ['paris', 'park', 'party'].filter((place) => place.startsWith(value));
  prompt('test_prompt_with_arguments', { arg1: completable(z.string(), places), arg2: z.string() }, ({ arg1, arg2 }) =>
    user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  prompt('test_prompt_with_embedded_resource', { resourceUri: z.string() }, ({ resourceUri: uri }) =>
    user(
      { type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } },
      text('Please process the embedded resource above.'),
    ),
  );
  prompt('test_prompt_with_image', undefined, () => user(image, text('Please analyze the image above.')));
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
