// A server of 2026-07-28 and nothing else, by hand: it offers what the conformance suite asks of a 2025-11-25 server, as
// far as its era can say it. Its tools ask by answering "I need this first"; the names and values are the suite's.
//
// It checks what it gets: a request whose headers don't repeat its body, or that does not say all about itself, is
// refused, so that a run through the gateway is a test of every request that the gateway makes.
//
// Usage: node modern.mjs [PORT]     (default 0: a free port, printed)
import { createServer } from 'node:http';

const VERSION = '2026-07-28';
const META = 'io.modelcontextprotocol/';
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACAAA==';
const CAPABILITIES = {
  logging: {},
  completions: {},
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  tools: { listChanged: true },
};

const text = (value) => ({ type: 'text', text: value });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const object = (properties, required = []) => ({ type: 'object', properties, required });
const string = { type: 'string' };
const resource = (uri, mimeType, contents) => ({ type: 'resource', resource: { uri, mimeType, ...contents } });

const options = ['option1', 'option2', 'option3'];
const titled = (kind) => ['First', 'Second', 'Third'].map((nth, i) => ({ const: `value${i + 1}`, title: `${nth} ${kind}` }));
const FORMS = {
  sep1034_defaults: object({
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  }),
  sep1330_enums: object({
    untitledSingle: { type: 'string', enum: options },
    titledSingle: { type: 'string', oneOf: titled('Option') },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
  }),
};
const USER_FORM = object(
  {
    username: { type: 'string', description: "User's response" },
    email: { type: 'string', description: "User's email address" },
  },
  ['username', 'email'],
);
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
    name: string,
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: string,
    email: string,
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

class Refused extends Error {
  constructor(code, message, data, status = 200) {
    super(message);
    Object.assign(this, { code, data, status });
  }
}

/** Asks one question, or gives the answer to it when the request has brought it. */
function answerOf(call, method, params) {
  const answer = call.params.inputResponses?.asked;
  if (answer !== undefined && call.params.requestState !== `state of ${call.params.name}`) {
    throw new Refused(-32602, 'the state did not come back');
  }
  if (answer === undefined) {
    throw {
      resultType: 'input_required',
      inputRequests: { asked: { method, params } },
      requestState: `state of ${call.params.name}`,
    };
  }
  return answer;
}

const elicit = (call, message, requestedSchema) => answerOf(call, 'elicitation/create', { mode: 'form', message, requestedSchema });
const said = ({ action, content }) => `action=${action}, content=${JSON.stringify(content ?? {})}`;

/** name → description, input schema, what it answers. */
const TOOLS = {
  test_simple_text: ['Answers a text', object({}), () => [text('This is a simple text response for testing.')]],
  test_image_content: ['Answers an image', object({}), () => [image]],
  test_audio_content: ['Answers a sound', object({}), () => [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]],
  test_embedded_resource: ['Answers a resource', object({}), () => [
    resource('test://embedded-resource', 'text/plain', { text: 'This is an embedded resource content.' }),
  ]],
  test_multiple_content_types: ['Answers a text, an image and a resource', object({}), () => [
    text('Multiple content types test:'),
    image,
    resource('test://mixed-content-resource', 'application/json', { text: '{"test":"data","value":123}' }),
  ]],
  test_tool_with_logging: ['Logs three times', object({}), async (call) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      call.log('info', data);
      await pause(50);
    }
    return [text('Logged three times.')];
  }],
  test_error_handling: ['Always fails', object({}), () => {
    throw { content: [text('This tool intentionally returns an error for testing')], isError: true };
  }],
  test_tool_with_progress: ['Reports progress', object({}), async (call) => {
    const { progressToken } = call.params._meta;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        call.notify('notifications/progress', { progressToken, progress, total: 100, message: `${progress} of 100` });
      }
      await pause(50);
    }
    return [text(`Progress token: ${progressToken}`)];
  }],
  test_sampling: ['Asks the model', object({ prompt: string }, ['prompt']), (call) => {
    const messages = [{ role: 'user', content: text(call.params.arguments.prompt) }];
    const { content } = answerOf(call, 'sampling/createMessage', { messages, maxTokens: 100 });
    return [text(`LLM response: ${content.text}`)];
  }],
  test_elicitation: ['Asks the user', object({ message: string }, ['message']), (call) => [
    text(`User response: ${said(elicit(call, call.params.arguments.message, USER_FORM))}`),
  ]],
  ...Object.fromEntries(
    Object.entries(FORMS).map(([name, form]) => [
      `test_elicitation_${name}`,
      ['Asks the user with every kind of field', object({}), (call) => [
        text(`Elicitation completed: ${said(elicit(call, 'Please fill in the form', form))}`),
      ]],
    ]),
  ),
  test_reconnection: ['Answers a little later', object({}), async () => {
    await pause(100);
    return [text('Answered after the stream was closed.')];
  }],
  json_schema_2020_12_tool: ['Tool with JSON Schema 2020-12 features', SCHEMA_2020_12, () => [text('ok')]],
};

const RESOURCES = {
  'test://static-text': ['text/plain', { text: 'This is the content of the static text resource.' }],
  'test://static-binary': ['image/png', { blob: PNG }],
  'test://watched-resource': ['text/plain', { text: 'Watched.' }],
};

const user = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
/** name → the arguments' names, what it answers. */
const PROMPTS = {
  test_simple_prompt: [[], () => user(text('This is a simple prompt for testing.'))],
  test_prompt_with_arguments: [['arg1', 'arg2'], ({ arg1, arg2 }) =>
    user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  test_prompt_with_embedded_resource: [['resourceUri'], ({ resourceUri }) =>
    user(
      resource(resourceUri, 'text/plain', { text: 'Embedded resource content for testing.' }),
      text('Please process the embedded resource above.'),
    )],
  test_prompt_with_image: [[], () => user(image, text('Please analyze the image above.'))],
};

const kept = { ttlMs: 0, cacheScope: 'private' };
const named = (entries, map) => Object.entries(entries).map(([name, parts]) => map(name, ...parts));

const METHODS = {
  'server/discover': () => ({ supportedVersions: [VERSION], capabilities: CAPABILITIES, ...kept }),
  'tools/list': () => ({
    tools: named(TOOLS, (name, description, inputSchema) => ({ name, description, inputSchema })),
    ...kept,
  }),
  'tools/call': async (call) => {
    const tool = TOOLS[call.params.name];
    if (!tool) throw new Refused(-32602, `no tool ${call.params.name}`);
    return { content: await tool[2](call) };
  },
  'resources/list': () => ({
    resources: named(RESOURCES, (uri, mimeType) => ({ uri, name: uri.slice(7), description: `The resource ${uri}`, mimeType })),
    ...kept,
  }),
  'resources/templates/list': () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }],
    ...kept,
  }),
  'resources/read': ({ params: { uri } }) => {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
    const [mimeType, contents] = id
      ? ['application/json', { text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }]
      : (RESOURCES[uri] ?? []);
    if (!mimeType) throw new Refused(-32602, 'resource not found', { uri });
    return { contents: [{ uri, mimeType, ...contents }], ...kept };
  },
  'prompts/list': () => ({
    prompts: named(PROMPTS, (name, names) => ({
      name,
      description: `The prompt ${name}`,
      arguments: names.map((argument) => ({ name: argument, required: true })),
    })),
    ...kept,
  }),
  'prompts/get': ({ params }) => {
    const prompt = PROMPTS[params.name];
    if (!prompt) throw new Refused(-32602, `no prompt ${params.name}`);
    return prompt[1](params.arguments ?? {});
  },
  'completion/complete': ({ params: { argument } }) => {
    const values = ['paris', 'park', 'party'].filter((place) => place.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  },
};

/** What is wrong with a request, by its headers and its envelope. */
function check({ method, params }, headers) {
  const meta = params?._meta ?? {};
  if (meta[`${META}protocolVersion`] !== VERSION || typeof meta[`${META}clientCapabilities`] !== 'object') {
    const data = { supported: [VERSION], requested: meta[`${META}protocolVersion`] ?? 'none' };
    throw new Refused(-32022, 'unsupported protocol version', data, 400);
  }
  const decode = (value) => {
    const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
    return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString();
  };
  const name = { 'tools/call': params.name, 'prompts/get': params.name, 'resources/read': params.uri }[method];
  const expected = { 'mcp-protocol-version': VERSION, 'mcp-method': method, ...(name !== undefined && { 'mcp-name': name }) };
  for (const [header, value] of Object.entries(expected)) {
    if (decode(headers[header] ?? '') !== value) throw new Refused(-32020, `${header} does not repeat the body`, undefined, 400);
  }
  if (headers['mcp-session-id']) throw new Refused(-32600, 'there are no sessions', undefined, 400);
}

/** Says nothing until there is something: then a notification makes the answer a stream. */
class Call {
  constructor({ id, params }, response) {
    Object.assign(this, { id, params, response });
  }

  notify(method, params) {
    this.#event({ jsonrpc: '2.0', method, params });
  }

  log(level, data) {
    if (this.params._meta[`${META}logLevel`] !== undefined) this.notify('notifications/message', { level, data });
  }

  end(body, status = 200) {
    const message = { jsonrpc: '2.0', id: this.id, ...body };
    if (this.response.headersSent) {
      this.#event(message);
      this.response.end();
    } else {
      this.response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(message));
    }
  }

  #event(message) {
    if (!this.response.headersSent) this.response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.response.write(`data: ${JSON.stringify(message)}\n\n`);
  }
}

async function serve(message, headers, response) {
  const call = new Call(message, response);
  try {
    check(message, headers);
    if (message.method === 'subscriptions/listen') {
      const _meta = { [`${META}subscriptionId`]: message.id };
      call.notify('notifications/subscriptions/acknowledged', { notifications: message.params.notifications, _meta });
      return;
    }
    const method = METHODS[message.method];
    if (!method) throw new Refused(-32601, 'method not found', undefined, 404);
    const result = await method(call);
    const _meta = { [`${META}serverInfo`]: { name: 'contraflow-conformance-modern', version: '1.0.0' } };
    call.end({ result: { resultType: 'complete', ...result, _meta } });
  } catch (thrown) {
    if (thrown instanceof Refused) {
      const { code, message: why, data, status } = thrown;
      call.end({ error: { code, message: why, ...(data && { data }) } }, status);
    } else if (thrown instanceof Error) {
      call.end({ error: { code: -32603, message: thrown.message } });
    } else {
      call.end({ result: { resultType: 'complete', ...thrown } });
    }
  }
}

const server = createServer(async (request, response) => {
  if (request.method !== 'POST') return response.writeHead(405).end();
  let body = '';
  for await (const chunk of request) body += chunk;
  const message = JSON.parse(body);
  if (message.id === undefined) return response.writeHead(202).end();
  await serve(message, request.headers, response);
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  console.log(`listening http://127.0.0.1:${server.address().port}/mcp`);
});
