// 200 sessions × 50 questions, all of them waiting at once: does every answer reach its own question?
//
// Each session calls `survey` of load/server.mjs, waits until it has been asked all of its questions, and then answers
// them in random order. Both sides check: the client that a question carries its own tag, the server that an answer
// carries the question's token and the tag of the session that was asked.
//
// Usage: node load/questions.mjs      SESSIONS, QUESTIONS and LIMIT_SECONDS change the size and the time limit.
// Through the gateway when CONTRAFLOW_BIN is set, directly otherwise. Ends with `N passed, N failed`.
import { Agent, request } from 'node:http';
import { HERE, RUN, startGateway, startServer, stopAll } from '../judge/processes.mjs';

const SESSIONS = Number(process.env.SESSIONS ?? 200);
const QUESTIONS = Number(process.env.QUESTIONS ?? 50);
const SECONDS = Number(process.env.LIMIT_SECONDS ?? 120);
const VERSION = '2025-11-25';

/** Streams hold their connection for the whole run; short requests share a bounded number. */
const streams = new Agent({ keepAlive: true, maxSockets: Infinity });
const short = new Agent({ keepAlive: true, maxSockets: 128 });

const counts = { asked: 0, foreign: 0, repeated: 0, refused: 0, right: 0, wrong: 0, stray: 0, unfinished: 0 };

function send(url, method, { agent = short, session, message } = {}) {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': VERSION };
    if (session) headers['mcp-session-id'] = session;
    if (message) headers['content-type'] = 'application/json';
    const sent = request(url, { method, headers, agent }, resolve).once('error', reject);
    sent.end(message && JSON.stringify({ jsonrpc: '2.0', ...message }));
  });
}

async function text(response) {
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) body += chunk;
  return body;
}

/** The JSON-RPC messages of an answer: of an event stream as they arrive, or the one of a JSON body. */
async function* messages(response) {
  if (!response.headers['content-type']?.includes('text/event-stream')) {
    const body = await text(response);
    if (response.statusCode >= 400) throw new Error(`HTTP ${response.statusCode} ${body}`);
    if (body) yield JSON.parse(body);
    return;
  }
  let rest = '';
  for await (const chunk of response.setEncoding('utf8')) {
    const events = (rest + chunk).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const data = event.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
      if (data.length > 0 && data[0] !== '') yield JSON.parse(data.join('\n'));
    }
  }
}

class Caller {
  questions = [];
  ids = new Set();

  constructor(url, tag) {
    Object.assign(this, { url, tag });
  }

  async start() {
    const clientInfo = { name: 'load', version: '1.0.0' };
    const params = { protocolVersion: VERSION, capabilities: { elicitation: {} }, clientInfo };
    const answer = await send(this.url, 'POST', { message: { id: 'init', method: 'initialize', params } });
    this.session = answer.headers['mcp-session-id'];
    for await (const { error } of messages(answer)) if (error) throw new Error(`initialize: ${JSON.stringify(error)}`);
    if (!this.session) throw new Error('initialize gave no session');
    await text(await this.post({ method: 'notifications/initialized' }));
    const get = await send(this.url, 'GET', { agent: streams, session: this.session });
    if (get.statusCode !== 200) throw new Error(`GET: HTTP ${get.statusCode}`);
    this.get = get;
    this.read(get).catch(() => undefined); // ends with the session
  }

  async survey() {
    const params = { name: 'survey', arguments: { tag: this.tag, n: QUESTIONS } };
    const response = await this.post({ id: 1, method: 'tools/call', params }, streams);
    await this.read(response);
    if (this.tally) for (const [key, n] of Object.entries(this.tally)) counts[key] += n;
    else counts.unfinished++;
  }

  async read(response) {
    for await (const message of messages(response)) {
      if (message.method === 'elicitation/create') this.ask(message);
      else if (message.id === 1) {
        if (message.error) throw new Error(`survey: ${JSON.stringify(message.error)}`);
        this.tally = JSON.parse(message.result.content[0].text);
      }
    }
  }

  ask({ id, params }) {
    const [tag, token] = params.message.split(' ');
    counts.asked++;
    if (tag !== this.tag) counts.foreign++;
    if (this.ids.has(JSON.stringify(id))) counts.repeated++;
    this.ids.add(JSON.stringify(id));
    this.questions.push({ id, result: { action: 'accept', content: { word: token, by: this.tag } } });
    if (this.questions.length === QUESTIONS) this.allAsked();
  }

  async allAsked() {
    await everybodyAsked();
    this.questions.sort(() => Math.random() - 0.5);
    await Promise.all(this.questions.map(async (answer) => {
      const response = await this.post(answer);
      await text(response);
      if (response.statusCode !== 202) counts.refused++;
    }));
  }

  post(message, agent) {
    return send(this.url, 'POST', { agent, session: this.session, message });
  }

  async leave() {
    await text(await send(this.url, 'DELETE', { session: this.session }));
    this.get.destroy();
  }
}

/** Opens when as many have arrived as it counts; gives the promise of that. */
function barrier(missing) {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return () => {
    missing -= 1;
    if (missing === 0) open();
    return opened;
  };
}

/** Passed when all sessions have been asked everything: from then on all questions wait at the same time. */
const everybodyAsked = barrier(SESSIONS);

let passed = 0;
let failed = 0;
function check(what, good) {
  if (good) passed++;
  else failed++;
  console.log(`${good ? 'ok  ' : 'FAIL'}  ${what}`);
}

const began = Date.now();
const timer = setTimeout(() => {
  const sum = counts.right + counts.wrong;
  console.log(`FAIL  not done after ${SECONDS} s: ${counts.asked} asked, ${sum} answers tallied, ${JSON.stringify(counts)}`);
  finish(1);
}, SECONDS * 1000);

function finish(failures) {
  clearTimeout(timer);
  stopAll();
  failed += failures;
  if (failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

try {
  const server = await startServer('load-server', process.execPath, ['load/server.mjs']);
  const binary = process.env.CONTRAFLOW_BIN;
  const url = binary ? (await startGateway(binary, { survey: server }))('survey') : server;
  const callers = Array.from({ length: SESSIONS }, (_, i) => new Caller(url, `s${i}`));
  await Promise.all(callers.map((caller) => caller.start()));
  const asking = Date.now();
  await Promise.all(callers.map((caller) => caller.survey()));
  const seconds = (Date.now() - asking) / 1000;
  await Promise.all(callers.map((caller) => caller.leave()));

  const expected = SESSIONS * QUESTIONS;
  const way = binary ? 'through the gateway' : 'directly';
  console.log(`${SESSIONS} sessions × ${QUESTIONS} questions ${way}: ${seconds.toFixed(1)} s (${((asking - began) / 1000).toFixed(1)} s to connect)`);
  check(`${counts.asked} of ${expected} questions arrived`, counts.asked === expected);
  check(`${counts.foreign} questions reached a session that did not cause them`, counts.foreign === 0);
  check(`${counts.repeated} questions came twice`, counts.repeated === 0);
  check(`${counts.refused} answers were not accepted`, counts.refused === 0);
  check(`${counts.right} of ${expected} answers came back to their own question`, counts.right === expected);
  check(`${counts.wrong + counts.stray} answers were misrouted`, counts.wrong + counts.stray === 0);
  check(`${counts.unfinished} calls without a result`, counts.unfinished === 0);
  finish(0);
} catch (error) {
  console.log(`FAIL  ${error.stack}`);
  finish(1);
}
