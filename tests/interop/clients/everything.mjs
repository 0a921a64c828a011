// Walks through all that the official everything server offers, and says what came of each step: a line of JSON each,
// `{"step": …, "value": …}`, made of what a person would see, so that two walks can be compared.
//
// Usage: node clients/everything.mjs legacy|modern http|sse|stdio URL-OR-COMMAND…
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Person as ModernPerson } from './modern-person.mjs';
import { Person as LegacyPerson } from './person.mjs';
import { PATIENCE_MS, until } from './scenarios.mjs';

const [era, transport, ...place] = process.argv.slice(2);
const modern = era === 'modern';
const FORM = { name: 'Ada', check: true, email: 'ada@example.com', integer: 7, number: 500 };

let answer = () => ({ action: 'accept', content: FORM });
const person = modern ? new ModernPerson((q) => answer(q)) : new LegacyPerson((q) => answer(q));
const { client } = person;

async function connect() {
  if (transport === 'http') {
    await person.connect({ url: place[0] });
    if (!modern) await person.listening();
    return;
  }
  const [command, ...args] = place;
  await client.connect(transport === 'sse' ? new SSEClientTransport(new URL(place[0])) : new StdioClientTransport({ command, args, stderr: 'ignore' }));
}

/** What a person sees of a tool's result. */
const seen = ({ content, structuredContent, isError }) => ({ content, structuredContent, isError: isError ?? false });
const call = async (name, args, options) => seen(await person.result(name, args, options));
const names = (list) => list.map(({ name, uri, uriTemplate }) => name ?? uri ?? uriTemplate).sort();
/** An error as a person sees it; its wording may name who says it. */
const failing = (promise) => promise.then(() => 'no error', ({ code }) => `error ${code}`);
const notices = (method) => person.told.filter((notice) => notice.method === method);

const STEPS = {
  'who it is': () => client.getServerVersion().name,
  instructions: () => client.getInstructions()?.length,
  capabilities: () => Object.keys(client.getServerCapabilities()).filter((name) => name !== 'tasks').sort(),
  tools: async () => {
    const { tools } = await client.listTools();
    // One is for clients that drive tasks, which those of this suite don't.
    return tools.filter(({ name }) => name !== 'simulate-research-query')
      .map(({ name, title, description, inputSchema, outputSchema, annotations }) =>
        ({ name, title, description, inputSchema, outputSchema, annotations })).sort((a, b) => (a.name < b.name ? -1 : 1));
  },
  echo: () => call('echo', { message: 'héllo\n“世界”' }),
  sum: () => call('get-sum', { a: 2, b: 40 }),
  'a wrong argument': () => call('get-sum', { a: 'two', b: 40 }).catch(({ code }) => `error ${code}`),
  'a tool that is not there': () => call('no-such-tool', {}).then(({ isError }) => `isError ${isError}`, ({ code }) => `error ${code}`),
  image: () => call('get-tiny-image', {}),
  annotations: () => call('get-annotated-message', { messageType: 'error', includeImage: true }),
  'structured content': () => call('get-structured-content', { location: 'Chicago' }),
  'links to resources': () => call('get-resource-links', { count: 3 }),
  'an embedded resource': () => call('get-resource-reference', { resourceType: 'Text', resourceId: 1 }).then(untimed),
  prompts: async () => (await client.listPrompts()).prompts,
  'a prompt': () => client.getPrompt({ name: 'args-prompt', arguments: { city: 'Zürich', state: 'ZH' } }).then(({ messages }) => messages),
  'a prompt with a resource': () => client.getPrompt({ name: 'resource-prompt', arguments: { resourceType: 'Text', resourceId: '2' } }).then(({ messages }) => untimed(messages)),
  'a prompt that is not there': () => failing(client.getPrompt({ name: 'no-such-prompt' })),
  completion: () => client.complete({ ref: { type: 'ref/prompt', name: 'completable-prompt' }, argument: { name: 'department', value: 'E' } }).then(({ completion }) => completion),
  resources: async () => names((await client.listResources()).resources),
  templates: async () => names((await client.listResourceTemplates()).resourceTemplates),
  'a resource': () => client.readResource({ uri: 'demo://resource/dynamic/text/1' }).then(({ contents }) => untimed(contents)),
  'a file': async () => {
    const { resources } = await client.listResources();
    const { contents } = await client.readResource({ uri: resources[0].uri });
    return contents.map(({ uri, mimeType, text }) => [uri, mimeType, text?.length]);
  },
  'a resource that is not there': () => failing(client.readResource({ uri: 'demo://nothing' })),
  'a form is accepted': async () => {
    const { content } = await call('trigger-elicitation-request', {});
    // Beside the answer it repeats the raw result, in which clients of an SDK may fill in defaults.
    return { content: content.slice(0, 2), asked: person.asked.at(-1).message, fields: Object.keys(person.asked.at(-1).requestedSchema.properties) };
  },
  'a form is declined': async () => {
    answer = () => ({ action: 'decline' });
    return (await call('trigger-elicitation-request', {})).content[0];
  },
  'a form is cancelled': async () => {
    answer = () => ({ action: 'cancel' });
    return (await call('trigger-elicitation-request', {})).content[0];
  },
  'an address is opened': async () => {
    answer = () => ({ action: 'accept' });
    const { content } = await call('trigger-url-elicitation', { url: 'https://example.com/login', message: 'Please log in', elicitationId: 'e-1' });
    const { message, url } = person.asked.at(-1);
    return { content: content[0], message, url };
  },
  sampling: async () => {
    const result = await call('trigger-sampling-request', { prompt: 'a long story', maxTokens: 20 });
    return { result, tokens: person.sampled.at(-1).maxTokens };
  },
  // The server keeps the roots of a session, and learns them when it begins; over some transports that is later than the first call.
  roots: () => until(async () => JSON.stringify(await call('get-roots-list', {})).includes('Café'), 'the server knows the roots').then(() => 'known'),
  progress: async () => {
    const steps = [];
    const result = await call('trigger-long-running-operation', { duration: 1, steps: 4 }, { onprogress: ({ progress, total }) => steps.push([progress, total]) });
    // The last one comes together with the result, and this server sends some twice over HTTP.
    return { result, steps: [...new Set(steps.map(String))].slice(0, 3) };
  },
  'a cancelled call ends': async () => {
    const stop = new AbortController();
    const args = { duration: 60, steps: 600 };
    const running = call('trigger-long-running-operation', args, { signal: stop.signal, onprogress: () => stop.abort('enough') });
    return running.then(() => 'it ran to its end', () => 'ended');
  },
  'a resource is told of': async () => {
    const uri = 'demo://resource/dynamic/text/1';
    const subscription = modern ? await client.listen({ resourceSubscriptions: [uri] }) : await client.subscribeResource({ uri });
    await call('toggle-subscriber-updates', {});
    await until(() => notices('notifications/resources/updated').length > 0, 'an update arrives');
    await call('toggle-subscriber-updates', {});
    if (modern) await subscription.close();
    return notices('notifications/resources/updated')[0].uri;
  },
  'logs arrive': async () => {
    // To clients of the new era only the logs of a running request go, and the server has no such ones.
    if (modern) return 'of the server, at its own time';
    await client.setLoggingLevel('debug');
    await call('toggle-simulated-logging', {});
    await until(() => notices('notifications/message').length > 0, 'a log message arrives');
    await call('toggle-simulated-logging', {});
    return 'of the server, at its own time';
  },
  'still there': () => call('echo', { message: 'bye' }),
};

/** With its keys in order, which says nothing to anybody. */
function ordered(value) {
  if (Array.isArray(value)) return value.map(ordered);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, ordered(value[key])]));
}

/** Without the time of day, which the server writes into its resources. */
function untimed(value) {
  return JSON.parse(JSON.stringify(value).replace(/\d{1,2}:\d{2}:\d{2}( [AP]M)?/g, '<time>'));
}

const watchdog = setTimeout(() => {
  console.log(JSON.stringify({ step: 'the walk', value: 'took too long' }));
  process.exit(1);
}, 4 * PATIENCE_MS);
await connect();
for (const [step, walk] of Object.entries(STEPS)) {
  let value;
  try {
    value = await walk();
  } catch (error) {
    value = `failed: ${error.message}`;
  }
  console.log(JSON.stringify({ step, value: ordered(value ?? null) }));
}
clearTimeout(watchdog);
if (transport === 'http') await person.leave();
else await client.close();
process.exit(0);
