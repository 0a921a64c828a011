// The asking server of the modern era, on the official TypeScript SDK 2.x: the tools of server.mjs, as far as this era
// can have them (README.md), with the same answers. What has to be asked ends the request with `input_required`.
//
// Usage: node modern-server.mjs [PORT] | stdio     (default: over HTTP at a free port, printed)
import { McpServer, ResourceTemplate, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { answersOf, ask, serveModern, serveProgram, states } from './modern.mjs';

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

const elicit = (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema });
const word = (answer) => (answer.action === 'accept' ? answer.content.answer : answer.action);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function newServer(changed) {
  const mcp = new McpServer(
    { name: 'interop-ts2', version: '1.0.0' },
    {
      capabilities: { logging: {}, tools: { listChanged: true }, resources: { subscribe: true }, prompts: {} },
      requestState: { verify: states.verify },
    },
  );
  const register = (name, description, shape, run) =>
    mcp.registerTool(name, { description, inputSchema: z.object(shape) }, async (args, context) => {
      const answer = await run(args, context);
      return typeof answer === 'string' ? { content: [{ type: 'text', text: answer }] } : answer;
    });
  /** A tool that asks `questions` (made of its arguments) at once, and answers with `answer`. */
  const asking = (name, description, shape, questions, answer) =>
    register(name, description, shape, async (args, context) =>
      (await ask(context, questions(args))) ?? answer(answersOf(context), args),
    );
  plainTools(register, changed);
  askingTools(asking, register);

  mcp.registerResource('menu', 'note://menu', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Soup, £4 – naïve café ☕' }],
  }));
  const template = new ResourceTemplate('note://ask/{what}', { list: undefined });
  mcp.registerResource('asked', template, { mimeType: 'text/plain' }, async (uri, { what }, context) =>
    (await ask(context, { what: elicit(`What of ${what}?`, ONE_WORD) })) ?? {
      contents: [{ uri: uri.href, mimeType: 'text/plain', text: word(answersOf(context).what) }],
    },
  );
  mcp.registerPrompt('asked', { description: 'Asks what to write' }, async (context) =>
    (await ask(context, { what: elicit('Write what?', ONE_WORD) })) ?? {
      messages: [{ role: 'user', content: { type: 'text', text: word(answersOf(context).what) } }],
    },
  );
  return mcp;
}

function plainTools(register, changed) {
  register('echo', 'Says the text back', { text: z.string() }, ({ text }) => text);

  register('whoami', 'The request headers as they arrived', {}, (_, { http }) =>
    JSON.stringify(Object.fromEntries([...http.req.headers].sort(([a], [b]) => (a < b ? -1 : 1)))),
  );

  register(
    'count_slowly',
    'Counts with progress and log; can be cancelled',
    { n: z.number().int(), pause_ms: z.number(), label: z.string() },
    async ({ n, pause_ms, label }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (let i = 1; i <= n; i++) {
        await pause(pause_ms);
        if (mcpReq.signal.aborted) {
          cancelled.add(label);
          return 'cancelled';
        }
        if (progressToken !== undefined) {
          const params = { progressToken, progress: i, total: n, message: `${label} ${i}` };
          await mcpReq.notify({ method: 'notifications/progress', params });
        }
        await mcpReq.log('info', `at ${i}`, label);
      }
      return `counted to ${n}`;
    },
  );

  register('was_cancelled', 'Whether a count_slowly was cancelled', { label: z.string() }, ({ label }) =>
    String(cancelled.has(label)),
  );

  register('remove', 'Removes something', { label: z.string() }, ({ label }) => {
    removed.add(label);
    return 'removed';
  });

  register('was_removed', 'Whether it was removed', { label: z.string() }, ({ label }) => String(removed.has(label)));

  register('touch', 'Says that a resource and the list of tools changed', { uri: z.string() }, ({ uri }) => {
    changed().resourceUpdated(uri);
    changed().toolsChanged();
    return 'touched';
  });
}

function askingTools(asking, register) {
  asking('book', 'Books a table; asks for party size and seating', {},
    () => ({ booking: elicit('How many, and where?', BOOKING_FORM) }),
    ({ booking: { action, content } }) =>
      action === 'accept' ? `booked: ${content.party_size} ${content.seating} ${content.note ?? '-'}` : `no booking: ${action}`,
  );

  asking('book_table', 'Books a table; asks for guests and a name', {},
    () => ({ table: elicit('How many people, and under which name?', TABLE_FORM) }),
    ({ table: { action, content } }) =>
      action === 'accept' ? `table: ${content.guests} ${content.name ?? '-'}` : `no table: ${action}`,
  );

  asking('sign_in', 'Asks for a password in a form, which no server may', {},
    () => ({ login: elicit('Please sign in', LOGIN_FORM) }),
    ({ login: { action } }) => `sign in: ${action}`,
  );

  asking('confirm', 'Asks yes or no', {},
    () => ({ sure: elicit('Cancel the booking?', YES_NO) }),
    ({ sure: { action, content } }) => {
      if (action === 'accept') return content.sure ? 'accepted: yes' : 'accepted: no';
      return action === 'decline' ? 'declined' : 'cancelled';
    },
  );

  const page = (id) => ({ page: inputRequired.elicitUrl({ message: 'Please pay', url: `https://pay.example/${id}?a=1&b=%20` }) });
  asking('open_url', 'Sends the user to a web page', { id: z.string() },
    ({ id }) => page(id),
    ({ page: { action } }) => `url: ${action}`,
  );

  register('pay_first', 'Refuses twice until a web page was visited', { id: z.string() }, ({ id }) => {
    const times = (unpaid.get(id) ?? 0) + 1;
    unpaid.set(id, times);
    return times > 2 ? `paid after ${times - 1} refusals` : inputRequired({ inputRequests: page(id) });
  });

  asking('summarize', 'Lets the client\'s model write', { text: z.string() },
    ({ text }) => ({
      summary: inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 50 }),
    }),
    ({ summary: { result } }) => `${result.model}: ${result.content.text}`,
  );

  asking('where', 'Lists the client\'s roots', {},
    () => ({ roots: inputRequired.listRoots() }),
    ({ roots: { roots } }) => roots.map(({ uri, name }) => `${uri}=${name}`).join(' '),
  );

  asking('ask', 'Asks the given question', { message: z.string() },
    ({ message }) => ({ answer: elicit(message, ONE_WORD) }),
    ({ answer }) => word(answer),
  );

  const questions = ({ n }) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`q${i}`, elicit(`Question ${i}?`, ONE_WORD)]));
  asking('ask_at_once', 'Asks several questions at the same time', { n: z.number().int() }, questions, (answers, { n }) =>
    Array.from({ length: n }, (_, i) => word(answers[`q${i}`])).join(' '),
  );

  register('ask_twice', 'Asks one question after the other', {}, async (_, { mcpReq }) => {
    const before = mcpReq.requestState()?.first;
    const answer = (key) => inputResponse(mcpReq.inputResponses, key);
    if (before !== undefined && answer('second').kind === 'elicit') return `${before} then ${word(answer('second'))}`;
    if (before === undefined && answer('first').kind !== 'elicit') {
      return inputRequired({ inputRequests: { first: elicit('First?', ONE_WORD) } });
    }
    const first = before ?? word(answer('first'));
    const inputRequests = { second: elicit(`Second, after ${first}?`, ONE_WORD) };
    return inputRequired({ inputRequests, requestState: await states.mint({ first }) });
  });

  register('ask_midway', 'Reports progress, asks, and reports again', { message: z.string() }, async ({ message }, context) => {
    const { mcpReq } = context;
    const asked = await ask(context, { answer: elicit(message, ONE_WORD) });
    const step = asked ? 1 : 2;
    await mcpReq.log('info', `step ${step}`, 'midway');
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken !== undefined) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: step, total: 2 } });
    }
    return asked ?? word(answersOf(context).answer);
  });

  register('ask_then_count', 'Asks, and counts for ever', { label: z.string() }, async ({ label }, context) => {
    const asked = await ask(context, { answer: elicit('Shall I?', ONE_WORD) });
    if (asked) return asked;
    while (!context.mcpReq.signal.aborted) {
      await context.mcpReq.log('info', 'counting');
      await pause(10);
    }
    cancelled.add(label);
    return 'cancelled';
  });
}

if (process.argv[2] === 'stdio') serveProgram(newServer);
else serveModern({ port: Number(process.argv[2] ?? 0), newServer });
