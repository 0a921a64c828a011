// 30 000 clients that open a session, say nothing more, and never say goodbye: is everything that they took free again?
//
// Each initializes, says that it is ready (so that the gateway reads its server's standalone stream), and goes away without
// DELETE. Their sessions end when they are idle; so many at once as come in that time. Memory and descriptors of the gateway are
// compared with those after a first thousand, and the server's sessions with none.
//
// Usage: node load/abandoned.mjs      (CONTRAFLOW_BIN names the gateway) SESSIONS changes the number. Ends with `N passed, N failed`.
import { readdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { HERE, RUN, auditOf, endGateway, freePort, gatewayId, gatewayMemory, serveGateway, startServer, stopAll } from '../judge/processes.mjs';

const binary = process.env.CONTRAFLOW_BIN;
const SESSIONS = Number(process.env.SESSIONS ?? 30_000);
const FIRST = 1_000;
const AT_ONCE = 64;
const MEMORY_MIB = 16;
const VERSION = '2025-11-25';
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
const total = { passed: 0, failed: 0 };

function check(name, good, why = '') {
  total[good ? 'passed' : 'failed'] += 1;
  console.log(`${good ? 'ok   ' : 'FAIL '} ${name}${good ? '' : `: ${why}`}`);
}

/** Sends a message and gives the head of the answer, when the whole answer is there. */
function post(url, message, session) {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
    if (session) Object.assign(headers, { 'mcp-session-id': session, 'mcp-protocol-version': VERSION });
    const sent = request(url, { method: 'POST', headers, agent }, (response) => {
      response.resume().once('end', () => resolve(response)).once('error', reject);
    });
    sent.once('error', reject).end(JSON.stringify({ jsonrpc: '2.0', ...message }));
  });
}

async function abandon(url) {
  const params = { protocolVersion: VERSION, capabilities: { elicitation: {} }, clientInfo: { name: 'nobody', version: '1.0.0' } };
  const { headers, statusCode } = await post(url, { id: 1, method: 'initialize', params });
  const session = headers['mcp-session-id'];
  if (!session) throw new Error(`initialize gave no session: HTTP ${statusCode}`);
  await post(url, { method: 'notifications/initialized' }, session);
}

/** So many sessions, AT_ONCE of them being opened at any time. */
async function wave(url, sessions) {
  let left = sessions;
  const one = async () => {
    while (left-- > 0) await abandon(url);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

const descriptors = () => readdirSync(`/proc/${gatewayId()}/fd`).length;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until the server has no session any more; gives what the gateway holds then. */
async function atRest(server) {
  const end = Date.now() + 60_000;
  let sessions;
  do {
    await pause(500);
    sessions = Number(await (await fetch(new URL('/sessions', server))).text());
  } while (sessions > 0 && Date.now() < end);
  // Connections that nobody uses are closed after a while, and freed memory is given back.
  await pause(6_000);
  return { sessions, descriptors: descriptors(), memory: gatewayMemory().now };
}

try {
  if (!binary) throw new Error('CONTRAFLOW_BIN must name the gateway');
  const server = await startServer('survey', process.execPath, ['load/server.mjs']);
  const port = await freePort();
  const config = [
    `listen: 127.0.0.1:${port}`,
    `servers: { survey: { url: "${server}" } }`,
    'sessions: { idle: 2s, max: 20000 }',
    'limits: { per_principal: { sessions: off } }',
    `audit: { file: ${JSON.stringify(auditOf())} }`,
  ];
  await serveGateway(binary, port, `${config.join('\n')}\n`);
  const url = `http://127.0.0.1:${port}/mcp/survey`;
  await wave(url, FIRST);
  const before = await atRest(server);
  const began = Date.now();
  await wave(url, SESSIONS);
  console.log(`      ${SESSIONS} sessions in ${Math.round((Date.now() - began) / 1000)} s`);
  const after = await atRest(server);
  console.log(`      before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`);
  check('the server has no session any more', after.sessions === 0, String(after.sessions));
  check('no descriptor is left', after.descriptors <= before.descriptors + 2, `${before.descriptors} before, ${after.descriptors} after`);
  check('no memory is left', after.memory <= before.memory + MEMORY_MIB, `${before.memory} MiB before, ${after.memory} MiB after`);
  check('SIGTERM ends the gateway with exit code 0', (await endGateway()) === 0);
} catch (error) {
  total.failed += 1;
  console.log(`FAIL  ${error.stack}`);
} finally {
  stopAll();
}
if (total.failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exit(total.failed === 0 ? 0 : 1);
