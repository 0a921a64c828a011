// The asking server on the official TypeScript SDK. Its tools are described in README.md; `server.py` has the
// same ones with the same answers, so that one list of expectations judges both.
//
// Usage: node server.mjs [PORT] | stdio | sse [PORT]     (default: Streamable HTTP at a free port, printed)
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { serveSessions, serveSse } from './sessions.mjs';

/** Labels of `count_slowly` runs that ended by cancellation; read by `was_cancelled`. */
const cancelled = new Set();
/** How often `pay_first` has sent each id away. */
const unpaid = new Map();
/** The labels that `remove` was called with. */
const removed = new Set();

const BOOKING_FORM = {
  type: 'object',
  properties: {
    party_size: { type: 'integer', title: 'Party size', minimum: 1, maximum: 12 },
    seating: { type: 'string', title: 'Seating', enum: ['inside', 'terrace'] },
    note: { type: 'string', title: 'Note' },
  },
  required: ['party_size', 'seating'],
};

const YES_NO = {
  type: 'object',
  properties: { sure: { type: 'boolean', title: 'Are you sure?' } },
  required: ['sure'],
};

const TABLE_FORM = {
  type: 'object',
  properties: { guests: { type: 'integer', title: 'People', minimum: 1 }, name: { type: 'string', title: 'Name' } },
  required: ['guests'],
};

const LOGIN_FORM = {
  type: 'object',
  properties: { user: { type: 'string' }, password: { type: 'string', title: 'Password' } },
  required: ['user', 'password'],
};

const ONE_WORD = {
  type: 'object',
  properties: { answer: { type: 'string', title: 'Your answer' } },
  required: ['answer'],
};

function newServer() {
  const mcp = new McpServer(
    { name: 'interop-ts', version: '1.0.0' },
    { capabilities: { logging: {}, tools: { listChanged: true }, resources: { subscribe: false } } },
  );
  const { server } = mcp;
  let count = 0;

  /** Registers a tool whose answer is one text. */
  const tool = (name, description, inputSchema, run) =>
    mcp.registerTool(name, { description, inputSchema }, async (args, extra) => ({
      content: [{ type: 'text', text: await run(args, extra) }],
    }));
  /** Asks on the stream of the call that is being served. */
  const ask = (extra, message, requestedSchema) =>
    server.elicitInput({ message, requestedSchema }, { relatedRequestId: extra.requestId });
  const word = (result) => (result.action === 'accept' ? result.content.answer : result.action);

  tool('echo', 'Says the text back', { text: z.string() }, ({ text }) => text);

  tool('counter', 'Counts the calls of this session', {}, () => String(++count));

  tool('whoami', 'The request headers as they arrived', {}, (_, extra) => {
    const headers = Object.entries(extra.requestInfo.headers).sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify(Object.fromEntries(headers));
  });

  tool('book', 'Books a table; asks for party size and seating', {}, async (_, extra) => {
    const { action, content } = await ask(extra, 'How many, and where?', BOOKING_FORM);
    if (action !== 'accept') return `no booking: ${action}`;
    return `booked: ${content.party_size} ${content.seating} ${content.note ?? '-'}`;
  });

  tool('book_table', 'Books a table; asks for guests and a name', {}, async (_, extra) => {
    const { action, content } = await ask(extra, 'How many people, and under which name?', TABLE_FORM);
    return action === 'accept' ? `table: ${content.guests} ${content.name ?? '-'}` : `no table: ${action}`;
  });

  tool('sign_in', 'Asks for a password in a form, which no server may', {}, async (_, extra) => {
    const { action } = await ask(extra, 'Please sign in', LOGIN_FORM);
    return `sign in: ${action}`;
  });

  tool('remove', 'Removes something', { label: z.string() }, ({ label }) => {
    removed.add(label);
    return 'removed';
  });

  tool('was_removed', 'Whether it was removed, in any session', { label: z.string() }, ({ label }) =>
    String(removed.has(label)),
  );

  tool('confirm', 'Asks yes or no', {}, async (_, extra) => {
    const { action, content } = await ask(extra, 'Cancel the booking?', YES_NO);
    if (action === 'accept') return content.sure ? 'accepted: yes' : 'accepted: no';
    return action === 'decline' ? 'declined' : 'cancelled';
  });

  tool('open_url', 'Sends the user to a web page', { id: z.string() }, async ({ id }, extra) => {
    const related = { relatedRequestId: extra.requestId };
    const { action } = await server.elicitInput(
      { mode: 'url', message: 'Please pay', elicitationId: id, url: `https://pay.example/${id}?a=1&b=%20` },
      related,
    );
    if (action === 'accept') await server.createElicitationCompletionNotifier(id, related)();
    return `url: ${action}`;
  });

  // The SDK passes this error on as it is, from a tool too.
  tool('pay_first', 'Refuses twice until a web page was visited', { id: z.string() }, ({ id }) => {
    const times = (unpaid.get(id) ?? 0) + 1;
    unpaid.set(id, times);
    if (times > 2) return `paid after ${times - 1} refusals`;
    const url = `https://pay.example/${id}?a=1&b=%20`;
    throw new UrlElicitationRequiredError([{ mode: 'url', message: 'Please pay', elicitationId: `${id}-${times}`, url }]);
  });

  tool('summarize', 'Lets the client\'s model write', { text: z.string() }, async ({ text }, extra) => {
    const { model, content } = await server.createMessage(
      { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 50 },
      { relatedRequestId: extra.requestId },
    );
    return `${model}: ${content.text}`;
  });

  tool('where', 'Lists the client\'s roots', {}, async (_, extra) => {
    const { roots } = await server.listRoots(undefined, { relatedRequestId: extra.requestId });
    return roots.map(({ uri, name }) => `${uri}=${name}`).join(' ');
  });

  tool(
    'count_slowly',
    'Counts with progress and log; can be cancelled',
    { n: z.number().int(), pause_ms: z.number(), label: z.string() },
    async ({ n, pause_ms, label }, extra) => {
      for (let i = 1; i <= n; i++) {
        await new Promise((resolve) => setTimeout(resolve, pause_ms));
        if (extra.signal.aborted) {
          cancelled.add(label);
          return 'cancelled';
        }
        const progressToken = extra._meta?.progressToken;
        if (progressToken !== undefined) {
          const params = { progressToken, progress: i, total: n, message: `${label} ${i}` };
          await extra.sendNotification({ method: 'notifications/progress', params });
        }
        const params = { level: 'info', logger: label, data: `at ${i}` };
        await extra.sendNotification({ method: 'notifications/message', params });
      }
      return `counted to ${n}`;
    },
  );

  tool('was_cancelled', 'Whether a count_slowly of any session was cancelled', { label: z.string() }, ({ label }) =>
    String(cancelled.has(label)),
  );

  tool('ask_twice', 'Asks one question after the other', {}, async (_, extra) => {
    const first = word(await ask(extra, 'First?', ONE_WORD));
    const second = word(await ask(extra, `Second, after ${first}?`, ONE_WORD));
    return `${first} then ${second}`;
  });

  tool('ask_at_once', 'Asks several questions at the same time', { n: z.number().int() }, async ({ n }, extra) => {
    const questions = Array.from({ length: n }, (_, i) => ask(extra, `Question ${i}?`, ONE_WORD));
    return (await Promise.all(questions)).map(word).join(' ');
  });

  tool('ask', 'Asks the given question', { message: z.string() }, async ({ message }, extra) =>
    word(await ask(extra, message, ONE_WORD)),
  );

  tool('ask_midway', 'Reports progress, asks, and reports again', { message: z.string() }, async ({ message }, extra) => {
    const progressToken = extra._meta?.progressToken;
    const step = async (progress) => {
      const params = { level: 'info', logger: 'midway', data: `step ${progress}` };
      await extra.sendNotification({ method: 'notifications/message', params });
      if (progressToken === undefined) return;
      await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
    };
    await step(1);
    const answer = word(await ask(extra, message, ONE_WORD));
    await step(2);
    return answer;
  });

  tool('ask_then_count', 'Asks, and counts for ever', { label: z.string() }, async ({ label }, extra) => {
    await ask(extra, 'Shall I?', ONE_WORD);
    while (!extra.signal.aborted) {
      await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'counting' } });
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    cancelled.add(label);
    return 'cancelled';
  });

  tool('ask_on_get', 'Asks on the stream that belongs to no call', { message: z.string() }, async ({ message }) =>
    word(await server.elicitInput({ message, requestedSchema: ONE_WORD })),
  );

  tool('touch', 'Says that a resource and the list of tools changed', { uri: z.string() }, async ({ uri }) => {
    await server.sendResourceUpdated({ uri });
    await server.sendToolListChanged();
    return 'touched';
  });

  mcp.registerResource('menu', 'note://menu', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Soup, £4 – naïve café ☕' }],
  }));
  const template = new ResourceTemplate('note://ask/{what}', { list: undefined });
  mcp.registerResource('asked', template, { mimeType: 'text/plain' }, async (uri, { what }, extra) => {
    const text = word(await ask(extra, `What of ${what}?`, ONE_WORD));
    return { contents: [{ uri: uri.href, mimeType: 'text/plain', text }] };
  });
  mcp.registerPrompt('asked', { description: 'Asks what to write' }, async (extra) => {
    const text = word(await ask(extra, 'Write what?', ONE_WORD));
    return { messages: [{ role: 'user', content: { type: 'text', text } }] };
  });
  return mcp;
}

const [how = 'http', port = '0'] = /^\d+$/.test(process.argv[2]) ? ['http', process.argv[2]] : process.argv.slice(2);
if (how === 'stdio') await newServer().connect(new StdioServerTransport());
else if (how === 'sse') serveSse({ port: Number(port), newServer });
else serveSessions({ port: Number(port), newServer });
