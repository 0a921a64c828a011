// The official TypeScript SDK 2.x as a client of the modern era: runs every scenario against one MCP endpoint and judges
// exact results.
//
// Usage: node modern.mjs LABEL ENDPOINT SERVER ERA
//   LABEL     what to print before each check
//   ENDPOINT  what the client connects to: the server itself, or the gateway in front of it
//   SERVER    the server itself; equal to ENDPOINT in a direct run
//   ERA       of the server: `legacy` or `modern`
// KEY_ADA and KEY_BOB are what two people identify themselves with to the gateway.
// Prints a line per check and `N passed, N failed`; exit code 1 when one failed. `modern.py` runs the same scenarios.
import assert from 'node:assert/strict';
import { Person, VERSION } from './modern-person.mjs';
import { PATIENCE_MS, accept, runScenarios, signed, until } from './scenarios.mjs';

const [label, endpoint, upstream, era] = process.argv.slice(2);
const through = endpoint !== upstream;

async function withPerson(answer, run, options) {
  const person = await new Person(answer, options).connect({ url: endpoint });
  try {
    return await run(person);
  } finally {
    await person.client.close();
  }
}

const scenarios = {
  'who the server is': () =>
    withPerson(accept({}), async ({ client }) => {
      assert.equal(client.getProtocolEra(), 'modern');
      assert.equal(client.getNegotiatedProtocolVersion(), VERSION);
      assert.match(client.getServerVersion().name, /^interop-/);
      assert.ok(client.getServerCapabilities().tools);
      const { tools } = await client.listTools();
      assert.ok(tools.some(({ name }) => name === 'book'));
    }),

  'a client that probes finds the modern era': () =>
    withPerson(signed('ada'), async (person) => {
      assert.equal(person.client.getProtocolEra(), 'modern');
      assert.equal(await person.call('ask', { message: 'Found?' }), 'ada:Found?');
    }, { mode: 'auto' }),

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

  'URL elicitation': () =>
    withPerson(() => ({ action: 'accept' }), async (person) => {
      assert.equal(await person.call('open_url', { id: 'pay-7' }), 'url: accept');
      const [{ mode, message, url, elicitationId }] = person.asked;
      assert.deepEqual([mode, message, url], ['url', 'Please pay', 'https://pay.example/pay-7?a=1&b=%20']);
      assert.equal(elicitationId, undefined, 'this era has no such id');
    }),

  'URL elicitation declined': () =>
    withPerson(() => ({ action: 'decline' }), async (person) => {
      assert.equal(await person.call('open_url', { id: 'pay-8' }), 'url: decline');
    }),

  'URL elicitation by an error, until it is paid': () =>
    withPerson(() => ({ action: 'accept' }), async (person) => {
      const id = `ts-${process.pid}-${through}`;
      assert.equal(await person.call('pay_first', { id }, { timeout: 30_000 }), 'paid after 2 refusals');
      assert.equal(person.asked[0].url, `https://pay.example/${id}?a=1&b=%20`);
    }),

  sampling: () =>
    withPerson(accept({}), async (person) => {
      assert.equal(await person.call('summarize', { text: 'a long story' }), 'toy-model: in short: a long story');
      assert.equal(person.sampled[0].maxTokens, 50);
    }),

  roots: () =>
    withPerson(accept({}), async (person) => {
      assert.equal(await person.call('where'), 'file:///home/ada=Ada file:///srv/caf%C3%A9=Café');
    }),

  'a prompt and a resource that ask': () =>
    withPerson(signed('ada'), async ({ client, asked }) => {
      const { messages } = await client.getPrompt({ name: 'asked' });
      assert.equal(messages[0].content.text, 'ada:Write what?');
      const { contents } = await client.readResource({ uri: 'note://ask/soup' });
      assert.equal(contents[0].text, 'ada:What of soup?');
      assert.equal(asked.length, 2);
    }),

  'progress and log': () =>
    withPerson(accept({}), async (person) => {
      const progress = [];
      const args = { n: 5, pause_ms: 5, label: 'slow' };
      const text = await person.call('count_slowly', args, { onprogress: (p) => progress.push(p), logLevel: 'info' });
      assert.equal(text, 'counted to 5');
      const steps = [1, 2, 3, 4, 5];
      assert.deepEqual(progress, steps.map((i) => ({ progress: i, total: 5, message: `slow ${i}` })));
      assert.deepEqual(person.told.map(({ level, logger, data }) => [level, logger, data]),
        steps.map((i) => ['info', 'slow', `at ${i}`]));
    }),

  'no log for a request that wants none, or less': () =>
    withPerson(accept({}), async (person) => {
      const args = { n: 3, pause_ms: 1, label: 'quiet' };
      assert.equal(await person.call('count_slowly', args), 'counted to 3');
      assert.equal(await person.call('count_slowly', args, { logLevel: 'error' }), 'counted to 3');
      assert.deepEqual(person.told, []);
    }),

  'progress and log before and after a question': () =>
    withPerson(signed('ada'), async (person) => {
      const progress = [];
      // The SDK reports each round that it answers as progress, too; that has no total.
      const onprogress = ({ progress: at, total }) => total !== undefined && progress.push(at);
      const options = { onprogress, logLevel: 'info' };
      assert.equal(await person.call('ask_midway', { message: 'Midway?' }, options), 'ada:Midway?');
      assert.deepEqual(progress, [1, 2]);
      assert.deepEqual(person.told.map(({ data }) => data), ['step 1', 'step 2']);
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

  'cancellation of a round after the first reaches the server': () =>
    withPerson(accept({ answer: 'yes' }), async (person) => {
      const name = `later-${process.pid}-${Date.now()}`;
      const stop = new AbortController();
      const options = { signal: stop.signal, logLevel: 'info' };
      const call = assert.rejects(person.call('ask_then_count', { label: name }, options));
      await until(() => person.told.some(({ data }) => data === 'counting'), 'the counting starts');
      stop.abort('changed my mind');
      await call;
      await until(async () => (await person.call('was_cancelled', { label: name })) === 'true', 'the server stops');
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
      assert.equal(person.asked.length, 8);
    }),

  '20 questions, one call after the other': () =>
    withPerson(signed('ada'), async (person) => {
      for (let i = 0; i < 20; i++) {
        assert.equal(await person.call('ask', { message: `Q${i}` }), `ada:Q${i}`);
      }
      assert.equal(person.asked.length, 20);
    }),

  '12 calls at once': () =>
    withPerson(signed('ada'), async (person) => {
      const calls = Array.from({ length: 12 }, (_, i) => person.call('ask', { message: `Q${i}` }));
      assert.deepEqual(await Promise.all(calls), calls.map((_, i) => `ada:Q${i}`));
    }),

  'two users at once, each gets their own': async () => {
    const people = await Promise.all(['ada', 'bob'].map((name) => new Person(signed(name), { name }).connect({ url: endpoint })));
    const tools = era === 'legacy' ? ['ask', 'ask_on_get'] : ['ask'];
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

  'a question that the client can\'t answer': () =>
    withPerson(() => { throw new Error('no screen'); }, async (person) => {
      await assert.rejects(person.result('book'), /no screen/);
      assert.equal(await person.call('echo', { text: 'still here' }), 'still here');
    }),

  'a question to a client without the capability': () =>
    withPerson(accept({}), async (person) => {
      const outcome = await person.result('book').catch((error) => error);
      // A server that asks all the same is the gateway's to refuse; without one, the SDK does.
      const code = through ? -32021 : (outcome.code ?? -32021);
      assert.ok(outcome.isError || outcome.code === code, JSON.stringify(outcome));
      assert.equal(await person.call('echo', { text: 'still here' }), 'still here');
    }, { capabilities: {} }),

  'list changed, to who listens': () =>
    withPerson(accept({}), async (person) => {
      const subscription = await person.client.listen({ toolsListChanged: true });
      // FastMCP of Python 1.x sends such notices, but never says that it does.
      const declared = person.client.getServerCapabilities().tools.listChanged || undefined;
      assert.equal(subscription.honoredFilter.toolsListChanged, declared);
      assert.equal(await person.call('touch', { uri: 'note://menu' }), 'touched');
      const changed = ({ method }) => method === 'notifications/tools/list_changed';
      if (declared) await until(() => person.told.some(changed), 'tools/list_changed arrives');
      assert.ok(!person.told.some(({ method }) => method === 'notifications/resources/updated'), 'nobody asked for it');
      await subscription.close();
      assert.equal(await subscription.closed, 'local');
    }),

  'errors and large texts': () =>
    withPerson(accept({}), async (person) => {
      await assert.rejects(person.client.readResource({ uri: 'note://none' }), ({ code }) => code === -32602 || code === 0);
      const wrong = await person.result('echo', { text: 7 }).catch((error) => error);
      assert.ok(wrong.isError || wrong.code === -32602, JSON.stringify(wrong));
      const unknown = await person.result('no_such_tool').catch((error) => error);
      assert.ok(unknown.isError || unknown.code === -32602, JSON.stringify(unknown));
      const { contents } = await person.client.readResource({ uri: 'note://menu' });
      assert.equal(contents[0].text, 'Soup, £4 – naïve café ☕');
      const text = 'größer – '.repeat(40_000);
      assert.equal(await person.call('echo', { text }), text);
    }),

  'headers that reach the server': () =>
    withPerson(accept({}), async (person) => {
      const seen = JSON.parse(await person.call('whoami'));
      assert.equal(seen.host, new URL(upstream).host);
      assert.equal(seen['mcp-protocol-version'], era === 'legacy' ? '2025-11-25' : VERSION);
      assert.equal(seen['mcp-session-id'] === undefined, era === 'modern');
      assert.equal(seen['mcp-method'], era === 'modern' ? 'tools/call' : undefined);
      if (!through) return;
      assert.equal(seen.authorization, undefined, 'the inbound credential went upstream');
      assert.equal(seen['x-api-key'], 'interop-upstream-key');
    }),

  ...(era === 'legacy' && {
    'questions on the GET stream': () =>
      withPerson(signed('ada'), async (person) => {
        assert.equal(await person.call('ask_on_get', { message: 'Here?' }), 'ada:Here?');
        const calls = Array.from({ length: 5 }, (_, i) => person.call('ask_on_get', { message: `G${i}` }));
        assert.deepEqual(await Promise.all(calls), calls.map((_, i) => `ada:G${i}`));
      }),

    'state belongs to the person': async () => {
      const [ada, bob] = await Promise.all(['ada', 'bob'].map((name) => new Person(signed(name), { name }).connect({ url: endpoint })));
      const before = Number(await ada.call('counter'));
      await bob.call('counter');
      assert.equal(await ada.call('counter'), String(before + 1));
      assert.notEqual(JSON.parse(await ada.call('whoami'))['mcp-session-id'], JSON.parse(await bob.call('whoami'))['mcp-session-id']);
      await Promise.all([ada.client.close(), bob.client.close()]);
    },

    'the server forgets the session; nobody notices': () =>
      withPerson(signed('ada'), async (person) => {
        const seen = JSON.parse(await person.call('whoami'));
        const headers = { 'mcp-session-id': seen['mcp-session-id'], 'mcp-protocol-version': seen['mcp-protocol-version'] };
        assert.equal((await fetch(upstream, { method: 'DELETE', headers })).status, 200);
        assert.equal(await person.call('counter'), '1');
        assert.equal(await person.call('ask', { message: 'Back?' }), 'ada:Back?');
        assert.equal(await person.call('ask_on_get', { message: 'Here too?' }), 'ada:Here too?');
      }),
  }),
};

await runScenarios(label, scenarios, 4 * PATIENCE_MS);
