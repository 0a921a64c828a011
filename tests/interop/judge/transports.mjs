// The official SDKs as servers over the transports that are not Streamable HTTP: as programs (stdio) and over HTTP+SSE,
// with the clients of both eras and the same expectations as everywhere.
//
// Usage: node judge/transports.mjs        (CONTRAFLOW_BIN names the gateway; without it there is nothing to run)
// Each server is met by one client of each era; ALL=1 plays every client at every server. CELL=ts2-py-stdio narrows it down
// to one client and server, ONLY=text to the scenarios whose name contains it.
import { randomBytes, createHash } from 'node:crypto';
import { HERE, RUN, auditOf, freePort, runJudge, serveGateway, startServer, stopAll } from './processes.mjs';
import { judgeRecords } from './records.mjs';
import { SDK_CLIENTS, SDK_SERVERS } from './sdks.mjs';

/** Name → SDK and transport. */
const SERVERS = {
  'ts-stdio': ['ts', 'stdio'],
  'py-stdio': ['py', 'stdio'],
  'ts2-stdio': ['ts2', 'stdio'],
  'py2-stdio': ['py2', 'stdio'],
  'ts-sse': ['ts', 'sse'],
  'py-sse': ['py', 'sse'],
};

/** The clients that each server meets. */
const PAIRS = {
  'ts-stdio': ['py', 'ts2'],
  'py-stdio': ['ts', 'py2'],
  'ts2-stdio': ['ts', 'py2'],
  'py2-stdio': ['py', 'ts2'],
  'ts-sse': ['ts', 'py2'],
  'py-sse': ['py', 'ts2'],
};

/** What has to do with HTTP at the server: its headers, its sessions, and the addresses of both sides. */
const OF_HTTP = [
  'headers that reach the server',
  "lists, reads and errors are the server's own",
  'state belongs to the person',
  'the server forgets the session; the gateway goes on, or the client starts anew',
  "an unknown protocol version gets the server's choice",
  'the server forgets the session; nobody notices',
  'protocol version 2025-03-26',
  'protocol version 2025-06-18',
  'protocol version 2025-11-25',
];

const binary = process.env.CONTRAFLOW_BIN;
const keys = { ada: randomBytes(16).toString('hex'), bob: randomBytes(16).toString('hex') };
const total = { passed: 0, failed: 0 };

function check(name, good) {
  total[good ? 'passed' : 'failed'] += 1;
  console.log(`${good ? 'ok   ' : 'FAIL '} ${name}`);
}

/** The scenarios of one client at one server. */
async function cell(client, server, endpoint) {
  const title = `gateway ${client} client > ${server} server`;
  const { era, command: [program, ...script] } = SDK_CLIENTS[client];
  const serverEra = SDK_SERVERS[SERVERS[server][0]].era;
  const env = { KEY_ADA: keys.ada, KEY_BOB: keys.bob, SERVER_ERA: serverEra, SKIP: JSON.stringify(OF_HTTP) };
  const args = [...script, title, endpoint, 'nowhere', ...(era === 'modern' ? [serverEra] : [])];
  await runJudge(title, program, args, total, { env });
}

/** A gateway in front of all the servers; clients of the modern era are told apart by keys. */
async function gateway(name, places, withKeys) {
  const port = await freePort();
  const lines = [`listen: 127.0.0.1:${port}`, 'servers:'];
  for (const [server, place] of Object.entries(places)) {
    lines.push(`  ${server}:`, ...place, '    questions: { limits: { per_call: off, pending: off, rate: off } }');
  }
  if (withKeys) {
    const hash = (key) => createHash('sha256').update(key).digest('hex');
    const list = Object.entries(keys).map(([name, key]) => `{ name: ${name}, sha256: ${hash(key)} }`);
    lines.push(`auth: { api_keys: [${list.join(', ')}] }`);
  }
  lines.push('limits: { per_principal: { sessions: 5000, questions: 20000 } }');
  lines.push(`audit: { file: ${JSON.stringify(auditOf(name))} }`);
  await serveGateway(binary, port, `${lines.join('\n')}\n`, name);
  return (server) => `http://127.0.0.1:${port}/mcp/${server}`;
}

try {
  if (!binary) throw new Error('CONTRAFLOW_BIN must name the gateway');
  const places = {};
  for (const [name, [sdk, transport]] of Object.entries(SERVERS)) {
    const [program, ...args] = SDK_SERVERS[sdk].command;
    places[name] = transport === 'stdio'
      ? [`    command: ${JSON.stringify([program, ...args, 'stdio'])}`, `    cwd: ${JSON.stringify(HERE)}`]
      : [`    url: ${await startServer(name, program, [...args, 'sse'])}`, '    transport: sse'];
  }
  const endpoint = {
    legacy: await gateway('gateway-without-keys', places, false),
    modern: await gateway('gateway', places, true),
  };
  for (const [client, { era }] of Object.entries(SDK_CLIENTS)) {
    for (const server of Object.keys(SERVERS)) {
      const wanted = process.env.CELL ? process.env.CELL === `${client}-${server}` : process.env.ALL || PAIRS[server].includes(client);
      if (!wanted) continue;
      await cell(client, server, endpoint[era](server));
    }
  }
  await judgeRecords(binary, check, [keys.ada, keys.bob, 'a long story']);
  await judgeRecords(binary, check, ['a long story'], 'gateway-without-keys');
} catch (error) {
  total.failed += 1;
  console.log(`FAIL  ${error.message}`);
} finally {
  stopAll();
}
if (total.failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exit(total.failed === 0 ? 0 : 1);
