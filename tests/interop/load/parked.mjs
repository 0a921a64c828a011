// 500 users of the modern era with parked calls at once: does every answer reach its own question, round after round?
//
// Each user has a key of their own, so that each has a session at the legacy server (load/server.mjs). Each calls
// `survey` and is sent away with questions; when all of them are away, they come back in random order with the answers,
// and are sent away again. Ids of questions and requests are the same for everybody; the unique token in each question
// and the tag of its user show an answer or a question that went astray. After each wave it waits until the gateway has
// ended all sessions, and until its memory is back where it was, but for a small rest.
//
// Usage: node load/parked.mjs        USERS, QUESTIONS (per round), ROUNDS, WAVES and LIMIT_SECONDS change the size.
// Needs CONTRAFLOW_BIN: without a gateway, clients of one era have nothing to say to servers of the other.
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { HERE, RUN, gatewayMemory, startGateway, startServer, stopAll } from '../judge/processes.mjs';

const USERS = Number(process.env.USERS ?? 500);
const QUESTIONS = Number(process.env.QUESTIONS ?? 5);
const ROUNDS = Number(process.env.ROUNDS ?? 2);
const WAVES = Number(process.env.WAVES ?? 3);
const SECONDS = Number(process.env.LIMIT_SECONDS ?? 240);
const VERSION = '2026-07-28';
/** How much more memory than at the start may be in use after a wave, in MiB, and how long it may take to get there. */
const REST = Number(process.env.REST_MIB ?? 32);
const SETTLES_MS = Number(process.env.SETTLES_MS ?? 30_000);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
const counts = { asked: 0, foreign: 0, repeated: 0, refused: 0, right: 0, wrong: 0, stray: 0, unfinished: 0 };

function post(url, key, message) {
  const headers = {
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'mcp-method': message.method,
    'mcp-name': message.params.name,
    'mcp-protocol-version': VERSION,
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent }, async (response) => {
      let body = '';
      for await (const chunk of response.setEncoding('utf8')) body += chunk;
      // The response is the body, or the last event of a stream.
      const last = /^data: ?(\{.*)$/gm;
      const json = response.headers['content-type'] === 'application/json' ? body : [...body.matchAll(last)].pop()?.[1];
      if (!json) return reject(new Error(`HTTP ${response.statusCode} without a response: ${body}`));
      resolve(JSON.parse(json));
    });
    sent.once('error', reject).end(JSON.stringify({ jsonrpc: '2.0', ...message }));
  });
}

class User {
  constructor(url, key, tag) {
    Object.assign(this, { url, key, tag });
  }

  /** One wave: calls, and comes back until the result is there. `away(round)` resolves when it is time to come back. */
  async survey(away) {
    const params = {
      name: 'survey',
      arguments: { tag: this.tag, n: QUESTIONS, rounds: ROUNDS },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': VERSION,
        'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
      },
    };
    const seen = new Set();
    let id = 1;
    let extra = {};
    for (;;) {
      const { result, error } = await post(this.url, this.key, { id, method: 'tools/call', params: { ...params, ...extra } });
      if (error) {
        counts.refused++;
        console.log(`      ${this.tag}: ${JSON.stringify(error)}`);
        break;
      }
      if (result.resultType !== 'input_required') {
        const tally = JSON.parse(result.content[0].text);
        for (const [key, n] of Object.entries(tally)) counts[key] += n;
        return;
      }
      const round = Math.floor(seen.size / QUESTIONS);
      const inputResponses = {};
      for (const [key, { params: { message } }] of Object.entries(result.inputRequests)) {
        const [tag, token] = message.split(' ');
        counts.asked++;
        if (tag !== this.tag) counts.foreign++;
        if (seen.has(token)) counts.repeated++;
        seen.add(token);
        inputResponses[key] = { action: 'accept', content: { word: token, by: this.tag } };
      }
      await away(round);
      id++;
      extra = { inputResponses, requestState: result.requestState };
    }
    counts.unfinished++;
  }
}

/**
 * Everybody who is away in a round; when all are, they are let go in random order. Who comes again in the same round
 * (questions that came too late for the first) does not wait.
 */
function newGates() {
  const gates = new Map();
  return (round) => {
    const gate = gates.get(round) ?? { waiting: [], open: false };
    gates.set(round, gate);
    if (gate.open) return undefined;
    const left = new Promise((resolve) => gate.waiting.push(resolve));
    if (gate.waiting.length === USERS) {
      gate.open = true;
      gate.waiting.sort(() => Math.random() - 0.5).forEach((go) => go());
    }
    return left;
  };
}

let passed = 0;
let failed = 0;
function check(what, good) {
  if (good) passed++;
  else failed++;
  console.log(`${good ? 'ok  ' : 'FAIL'}  ${what}`);
}

function finish(failures) {
  clearTimeout(timer);
  stopAll();
  failed += failures;
  if (failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

const timer = setTimeout(() => {
  console.log(`FAIL  not done after ${SECONDS} s: ${JSON.stringify(counts)}`);
  finish(1);
}, SECONDS * 1000);

try {
  const binary = process.env.CONTRAFLOW_BIN;
  if (!binary) {
    console.log('todo  without a gateway there is nothing to run: CONTRAFLOW_BIN names it');
    finish(0);
  }
  const server = await startServer('load-server', process.execPath, ['load/server.mjs']);
  const keys = Object.fromEntries(Array.from({ length: USERS }, (_, i) => [`u${i}`, randomBytes(16).toString('hex')]));
  const options = { keys, more: 'sessions: { idle: 2s }\n' };
  const url = (await startGateway(binary, { survey: server }, options))('survey');
  const users = Object.entries(keys).map(([tag, key]) => new User(url, key, tag));
  const start = gatewayMemory().now;
  const memory = [];
  const seconds = [];
  for (let wave = 0; wave < WAVES; wave++) {
    const began = Date.now();
    const away = newGates();
    await Promise.all(users.map((user) => user.survey(away)));
    seconds.push((Date.now() - began) / 1000);
    while ((await fetch(new URL('/sessions', server)).then((response) => response.text())) !== '0') await pause(100);
    const over = Date.now();
    while (gatewayMemory().now > start + REST && Date.now() < over + SETTLES_MS) await pause(100);
    memory.push({ ...gatewayMemory(), seconds: (Date.now() - over) / 1000 });
  }

  const expected = USERS * QUESTIONS * ROUNDS * WAVES;
  console.log(`${USERS} users × ${ROUNDS} rounds × ${QUESTIONS} questions, ${WAVES} waves: ${seconds.map((s) => s.toFixed(1)).join(', ')} s`);
  const after = memory.map((m) => `${m.now.toFixed(0)} after ${m.seconds.toFixed(0)} s`).join(', ');
  console.log(`own memory: ${start.toFixed(0)} MiB at the start, after each wave ${after} (resident at most ${memory.at(-1).peak.toFixed(0)})`);
  check(`${counts.asked} of ${expected} questions arrived`, counts.asked === expected);
  check(`${counts.foreign} questions reached a user who did not cause them`, counts.foreign === 0);
  check(`${counts.repeated} questions came twice`, counts.repeated === 0);
  check(`${counts.refused} calls or answers were not accepted`, counts.refused === 0);
  check(`${counts.right} of ${expected} answers came back to their own question`, counts.right === expected);
  check(`${counts.wrong + counts.stray} answers were misrouted`, counts.wrong + counts.stray === 0);
  check(`${counts.unfinished} calls without a result`, counts.unfinished === 0);
  check(`memory comes back to the start + ${REST} MiB after each wave`, memory.every((m) => m.now <= start + REST));
  finish(0);
} catch (error) {
  console.log(`FAIL  ${error.stack}`);
  finish(1);
}
