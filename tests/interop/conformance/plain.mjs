// What the conformance suite calls of a server that has nothing to ask: tools, resources and prompts by the suite's
// fixed names. Registered at the legacy server (server.mjs) and at the modern one (modern-server.mjs) alike.
import { z } from 'zod';

// One red pixel, and a WAV header with one silent sample.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACAAA==';

export const text = (value) => ({ type: 'text', text: value });
export const image = { type: 'image', data: PNG, mimeType: 'image/png' };
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const DEFAULTS_FORM = {
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
export const ENUMS_FORM = {
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

export const USER_FORM = {
  type: 'object',
  properties: {
    username: { type: 'string', description: "User's response" },
    email: { type: 'string', description: "User's email address" },
  },
  required: ['username', 'email'],
};

export const NAME_FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
export const COLOR_FORM = { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] };
export const OK_FORM = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] };
export const CONTEXT_FORM = { type: 'object', properties: { context: { type: 'string' } }, required: ['context'] };

/** A schema with the 2020-12 keywords that typed models lose on the way. */
export const SCHEMA_2020_12 = {
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

/**
 * Registers all of it.
 *
 * @param mcp a server of either SDK
 * @param sdk what differs: `completable` and `ResourceTemplate` of the SDK, `argsOf(shape)` for a prompt's arguments,
 *   and how a handler reaches its request: `notify(context, notification)` and `tokenOf(context)`
 */
export function registerPlain(mcp, { completable, ResourceTemplate, argsOf, notify, tokenOf }) {
  const tool = (name, description, content) =>
    mcp.registerTool(name, { description, inputSchema: z.object({}) }, async (_, context) => ({ content: await content(context) }));

  tool('test_simple_text', 'Answers a text', () => [text('This is a simple text response for testing.')]);
  tool('test_image_content', 'Answers an image', () => [image]);
  tool('test_audio_content', 'Answers a sound', () => [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]);
  tool('test_embedded_resource', 'Answers a resource', () => [
    {
      type: 'resource',
      resource: {
        uri: 'test://embedded-resource',
        mimeType: 'text/plain',
        text: 'This is an embedded resource content.',
      },
    },
  ]);
  tool('test_multiple_content_types', 'Answers a text, an image and a resource', () => [
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

  tool('test_tool_with_logging', 'Logs three times', async (context) => {
    const log = (data) => notify(context, { method: 'notifications/message', params: { level: 'info', data } });
    await log('Tool execution started');
    await pause(50);
    await log('Tool processing data');
    await pause(50);
    await log('Tool execution completed');
    return [text('Logged three times.')];
  });

  tool('test_error_handling', 'Always fails', () => {
    throw new Error('This tool intentionally returns an error for testing');
  });

  tool('test_tool_with_progress', 'Reports progress', async (context) => {
    const progressToken = tokenOf(context);
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
        await notify(context, { method: 'notifications/progress', params });
      }
      await pause(50);
    }
    return [text(`Progress token: ${progressToken}`)];
  });

  registerResources(mcp, ResourceTemplate);
  registerPrompts(mcp, completable, argsOf);
}

function registerResources(mcp, ResourceTemplate) {
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
}

function registerPrompts(mcp, completable, argsOf) {
  const user = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
  const prompt = (name, argsSchema, run) =>
    mcp.registerPrompt(name, { description: `The prompt ${name}`, ...(argsSchema && { argsSchema }) }, run);

  prompt('test_simple_prompt', undefined, () => user(text('This is a simple prompt for testing.')));
  const places = (value) => ['paris', 'park', 'party'].filter((place) => place.startsWith(value));
  const two = { arg1: completable(z.string(), places), arg2: z.string() };
  prompt('test_prompt_with_arguments', argsOf(two), ({ arg1, arg2 }) =>
    user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  prompt('test_prompt_with_embedded_resource', argsOf({ resourceUri: z.string() }), ({ resourceUri: uri }) =>
    user(
      { type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } },
      text('Please process the embedded resource above.'),
    ),
  );
  prompt('test_prompt_with_image', undefined, () => user(image, text('Please analyze the image above.')));
}
