// The official TypeScript SDK as client: runs every scenario against one MCP endpoint and judges exact results.
//
// Usage: node client.mjs LABEL ENDPOINT SERVER
//   LABEL     what to print before each check
//   ENDPOINT  what the client connects to: the server itself, or the gateway in front of it; by HTTP+SSE where it
//             ends in /sse
//   SERVER    the server itself; equal to ENDPOINT in a direct run
// SERVER_ERA=modern says that the server is one of the modern era: it has no sessions, and nothing on a GET stream.
// Prints a line per check and `N passed, N failed`; exit code 1 when one failed. `client.py` runs the same scenarios.
import assert from 'node:assert/strict';
import { Person } from './person.mjs';
import { PATIENCE_MS, accept, runScenarios, signed, until } from './scenarios.mjs';

const [label, endpoint, upstream] = process.argv.slice(2);
const through = endpoint !== upstream;
/** The client has one stream, which is its session. */
const oldest = endpoint.endsWith('/sse');
const modern = process.env.SERVER_ERA === 'modern';

async function withPerson(answer, run, options) {
  const person = await new Person(answer, options?.capabilities).connect({ url: endpoint, ...options });
  try {
    return await run(person);
  } finally {
    await person.client.close();
  }
}

const scenarios = {
  'elicitation accepted': () =>
    withPerson(accept({ party_size: 4, seating: 'terrace', note: 'Zoë ☂' }), async (person) => {
      assert.equal(await person.call('book'), 'booked: 4 terrace Zoë ☂');
      assert.equal(person.asked.length, 1);
      const [{ message, requestedSchema }] = person.asked;
      assert.equal(message, 'How many, and where?');
      assert.deepEqual(Object.keys(requestedSchema.properties), ['party_size', 'seating', 'note']);
      assert.equal(requestedSchema.properties.party_size.maximum, 12);
    }),

  'elicitation declined': () =>
    withPerson(() => ({ action: 'decline' }), async (person) => {
      assert.equal(await person.call('book'), 'no booking: decline');
      assert.equal(await person.call('confirm'), 'declined');
    }),

  'elicitation cancelled': () =>
    withPerson(() => ({ action: 'cancel' }), async (person) => {
      assert.equal(await person.call('book'), 'no booking: cancel');
      assert.equal(await person.call('confirm'), 'cancelled');
    }),

  'yes and no are told apart': async () => {
    await withPerson(accept({ sure: true }), async (p) => assert.equal(await p.call('confirm'), 'accepted: yes'));
    await withPerson(accept({ sure: false }), async (p) => assert.equal(await p.call('confirm'), 'accepted: no'));
  },

  'URL elicitation and its completion': () =>
    withPerson(() => ({ action: 'accept' }), async (person) => {
      assert.equal(await person.call('open_url', { id: 'pay-7' }), 'url: accept');
      const [{ mode, url, elicitationId }] = person.asked;
      assert.deepEqual([mode, url], ['url', 'https://pay.example/pay-7?a=1&b=%20']);
      // The modern era has neither such ids nor a notice of the end: the gateway makes up the one that clients need.
      if (modern) return assert.ok(elicitationId);
      assert.equal(elicitationId, 'pay-7');
      const complete = { method: 'notifications/elicitation/complete', elicitationId: 'pay-7' };
      await until(() => person.told.some((notice) => same(notice, complete)), 'the completion arrives');
    }),

  'URL elicitation declined': () =>
    withPerson(() => ({ action: 'decline' }), async (person) => {
      assert.equal(await person.call('open_url', { id: 'pay-8' }), 'url: decline');
    }),

  sampling: () =>
    withPerson(accept({}), async (person) => {
      assert.equal(await person.call('summarize', { text: 'a long story' }), 'toy-model: in short: a long story');
      assert.equal(person.sampled[0].maxTokens, 50);
    }),

  roots: () =>
    withPerson(accept({}), async (person) => {
      await person.listening();
      assert.equal(await person.call('where'), 'file:///home/ada=Ada file:///srv/caf%C3%A9=Café');
    }),

  'progress and log': () =>
    withPerson(accept({}), async (person) => {
      const progress = [];
      // A server of the modern era logs for who asks for it; Python's doesn't say that it does, so nobody can ask.
      const silent = modern && !person.client.getServerCapabilities().logging;
      if (modern && !silent) await person.client.setLoggingLevel('info');
      const args = { n: 5, pause_ms: 5, label: 'slow' };
      const text = await person.call('count_slowly', args, { onprogress: (p) => progress.push(p) });
      assert.equal(text, 'counted to 5');
      const steps = [1, 2, 3, 4, 5];
      // With HTTP+SSE this SDK forgets a call before it looks at the progress that came along with its outcome.
      const came = oldest ? person.progress.map(({ progressToken, ...rest }) => rest) : progress;
      assert.deepEqual(came, steps.map((i) => ({ progress: i, total: 5, message: `slow ${i}` })));
      assert.deepEqual(person.told.map(({ level, logger, data }) => [level, logger, data]),
        silent ? [] : steps.map((i) => ['info', 'slow', `at ${i}`]));
    }),

  'cancellation reaches the server': () =>
    withPerson(accept({}), async (person) => {
      const name = `cancel-${process.pid}-${Date.now()}`;
      const stop = new AbortController();
      const onprogress = ({ progress }) => progress === 2 && stop.abort('changed my mind');
      const args = { n: 100_000, pause_ms: 10, label: name };
      await assert.rejects(person.call('count_slowly', args, { onprogress, signal: stop.signal }));
      await until(async () => (await person.call('was_cancelled', { label: name })) === 'true', 'the server stops');
      assert.equal(await person.call('was_cancelled', { label: 'another' }), 'false');
    }),

  'two questions one after the other': () =>
    withPerson(signed('ada'), async (person) => {
      assert.equal(await person.call('ask_twice'), 'ada:First? then ada:Second, after ada:First??');
      assert.deepEqual(person.asked.map((q) => q.message), ['First?', 'Second, after ada:First??']);
    }),

  'several questions at once': () =>
    withPerson(signed('ada'), async (person) => {
      const expected = Array.from({ length: 8 }, (_, i) => `ada:Question ${i}?`).join(' ');
      assert.equal(await person.call('ask_at_once', { n: 8 }), expected);
    }),

  'question on the GET stream': () =>
    withPerson(signed('ada'), async (person) => {
      await person.listening();
      assert.equal(await person.call('ask_on_get', { message: 'Here?' }), 'ada:Here?');
    }),

  'resource updated and list changed on the GET stream': () =>
    withPerson(accept({}), async (person) => {
      await person.listening();
      if (modern) await person.client.subscribeResource({ uri: 'note://menu' });
      assert.equal(await person.call('touch', { uri: 'note://menu' }), 'touched');
      const updated = { method: 'notifications/resources/updated', uri: 'note://menu' };
      await until(() => person.told.some((notice) => same(notice, updated)), 'resources/updated arrives');
      const changed = ({ method }) => method === 'notifications/tools/list_changed';
      await until(() => person.told.some(changed), 'tools/list_changed arrives');
    }),

  '20 questions on one session': () =>
    withPerson(signed('ada'), async (person) => {
      for (let i = 0; i < 20; i++) {
        assert.equal(await person.call('ask', { message: `Q${i}` }), `ada:Q${i}`);
      }
      assert.equal(person.asked.length, 20);
    }),

  '20 calls at once on one session': () =>
    withPerson(signed('ada'), async (person) => {
      const calls = Array.from({ length: 20 }, (_, i) => person.call('ask', { message: `Q${i}` }));
      assert.deepEqual(await Promise.all(calls), calls.map((_, i) => `ada:Q${i}`));
    }),

  'two users at once, each gets their own': async () => {
    const people = await Promise.all(['ada', 'bob'].map(async (name) => {
      const person = await new Person(signed(name)).connect({ url: endpoint });
      await person.listening();
      return Object.assign(person, { name });
    }));
    assert.notEqual(people[0].sessionId, people[1].sessionId);
    const tools = modern ? ['ask'] : ['ask', 'ask_on_get'];
    await Promise.all(people.flatMap((person) => Array.from({ length: 10 }, async (_, i) => {
      const message = `${person.name} ${i}`;
      assert.equal(await person.call(tools[i % tools.length], { message }), `${person.name}:${message}`);
    })));
    for (const person of people) {
      assert.equal(person.asked.length, 10);
      for (const { message } of person.asked) assert.ok(message.startsWith(person.name), `${person.name} saw ${message}`);
      await person.client.close();
    }
  },

  'a question that the client answers with an error': () =>
    withPerson(() => { throw new Error('no screen'); }, async (person) => {
      const result = await person.result('book');
      assert.equal(result.isError, true);
      // No modern server hears of the error, its era can't say it: the gateway ends the call, in its own words.
      if (!modern) assert.match(result.content[0].text, /no screen/);
      assert.equal(await person.call('echo', { text: 'still here' }), 'still here');
    }),

  'a question to a client without the capability': () =>
    withPerson(accept({}), async (person) => {
      const result = await person.result('book');
      assert.equal(result.isError, true);
      assert.equal(await person.call('echo', { text: 'still here' }), 'still here');
    }, { capabilities: {} }),

  'state belongs to the session': async () => {
    const [ada, bob] = await Promise.all([new Person(accept({})).connect({ url: endpoint }), new Person(accept({})).connect({ url: endpoint })]);
    assert.deepEqual([await ada.call('counter'), await ada.call('counter'), await bob.call('counter')], ['1', '2', '1']);
    assert.equal(await ada.call('counter'), '3');
    await Promise.all([ada.leave(), bob.leave()]);
  },

  'session end': async () => {
    const person = await new Person(accept({})).connect({ url: endpoint });
    if (!modern) assert.equal(await person.call('counter'), '1');
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': person.sessionId,
      'mcp-protocol-version': person.version,
    };
    const { address } = person;
    await person.leave();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/list' });
    const late = () => fetch(address ?? endpoint, { method: 'POST', headers, body }).then(({ status }) => status);
    // The end of a stream has no answer that could be waited for.
    if (oldest) await until(async () => (await late()) === 404, 'the session ends with its stream');
    assert.equal(await late(), 404);
    if (!modern) await withPerson(accept({}), async (next) => assert.equal(await next.call('counter'), '1'));
  },

  'the server forgets the session; the gateway goes on, or the client starts anew': async () => {
    const person = await new Person(signed('ada')).connect({ url: endpoint });
    const seen = JSON.parse(await person.call('whoami'));
    const headers = { 'mcp-session-id': seen['mcp-session-id'], 'mcp-protocol-version': person.version };
    assert.equal((await fetch(upstream, { method: 'DELETE', headers })).status, 200);
    if (through) {
      // The gateway goes on with a new session there.
      assert.equal(await person.call('counter'), '1');
      assert.equal(await person.call('ask', { message: 'Still?' }), 'ada:Still?');
    } else {
      await assert.rejects(person.call('counter'), (error) => error.code === 404);
    }
    await person.client.close();
    await withPerson(signed('ada'), async (next) => {
      assert.equal(await next.call('counter'), '1');
      assert.equal(await next.call('ask', { message: 'Back?' }), 'ada:Back?');
    });
  },

  'headers that reach the server': () =>
    withPerson(accept({}), async (person) => {
      const seen = JSON.parse(await person.call('whoami'));
      assert.equal(seen['mcp-protocol-version'], modern ? '2026-07-28' : person.version);
      assert.equal(seen['mcp-method'], modern ? 'tools/call' : undefined);
      assert.equal(seen.host, new URL(upstream).host);
      if (through) {
        assert.equal(seen.authorization, undefined, 'the inbound credential went upstream');
        assert.equal(seen['x-api-key'], 'interop-upstream-key');
        assert.notEqual(seen['mcp-session-id'], person.sessionId);
      } else {
        assert.equal(seen.authorization, 'Bearer inbound-canary');
        assert.equal(seen['mcp-session-id'], person.sessionId);
      }
    }, { headers: { authorization: 'Bearer inbound-canary' } }),

  'lists, reads and errors are the server\'s own': async () => {
    const questions = [
      ['tools/list', {}],
      ['resources/list', {}],
      ['resources/templates/list', {}],
      ['prompts/list', {}],
      ['resources/read', { uri: 'note://menu' }],
      ['resources/read', { uri: 'note://none' }],
      ['tools/call', { name: 'no_such_tool', arguments: {} }],
      ['tools/call', { name: 'echo', arguments: { text: 7 } }],
      ['tools/call', { name: 'echo', arguments: { text: 'ünï ☕ \u2028 "quoted"' }, _meta: { 'x.example/keep': [1, null] } }],
      ['vendor/unknown', { any: 'thing' }],
      ['ping', {}],
    ];
    const anything = { parse: (value) => value, safeParse: (data) => ({ success: true, data }), _def: {}, _zod: undefined };
    const answers = async (url) =>
      withPerson(accept({}), async ({ client }) => {
        const all = [JSON.stringify([client.getServerVersion(), client.getServerCapabilities(), client.getInstructions()])];
        for (const [method, params] of questions) {
          const answer = await client.request({ method, params }, anything).catch(({ code, message, data }) => ({ code, message, data }));
          all.push(`${method} ${JSON.stringify(answer)}`);
        }
        return all;
      }, { url });
    assert.deepEqual(await answers(endpoint), await answers(upstream));
  },

  'large texts': () =>
    withPerson(accept({}), async (person) => {
      const text = 'größer – '.repeat(40_000);
      assert.equal(await person.call('echo', { text }), text);
    }),

  'logging level and ping': () =>
    withPerson(accept({}), async ({ client }) => {
      await client.ping();
      if (client.getServerCapabilities().logging) await client.setLoggingLevel('debug');
    }),

  ...Object.fromEntries([...(oldest ? ['2024-11-05'] : []), '2025-03-26', '2025-06-18', '2025-11-25'].map((version) => [
    `protocol version ${version}`,
    () =>
      withPerson(signed('ada'), async (person) => {
        assert.equal(person.version, version);
        if (modern) return assert.equal(await person.call('echo', { text: 'Old?' }), 'Old?');
        // 2025-03-26 knows no such header; this SDK sends it all the same, another client of the server need not.
        const header = JSON.parse(await person.call('whoami'))['mcp-protocol-version'];
        if (version > '2025-03-26' || header !== undefined) assert.equal(header, version);
        assert.equal(await person.call('ask', { message: 'Old?' }), 'ada:Old?');
        await person.listening();
        assert.equal(await person.call('ask_on_get', { message: 'Older?' }), 'ada:Older?');
      }, { version }),
  ])),

  'an unknown protocol version gets the server\'s choice': () =>
    withPerson(signed('ada'), async (person) => {
      assert.equal(person.version, '2025-11-25');
      assert.equal(await person.call('ask', { message: 'New?' }), 'ada:New?');
    }, { version: '1999-01-01' }),
};

function same(left, right) {
  return JSON.stringify(left) === JSON.stringify(right);
}

/** What a server of the modern era has not. */
const OF_LEGACY = new Set([
  'question on the GET stream',
  'state belongs to the session',
  'the server forgets the session; the gateway goes on, or the client starts anew',
  'lists, reads and errors are the server\'s own',
]);

if (modern) for (const name of OF_LEGACY) delete scenarios[name];
await runScenarios(label, scenarios, 2 * PATIENCE_MS);
