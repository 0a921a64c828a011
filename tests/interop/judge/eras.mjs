// The official SDKs of both eras, across: modern clients at legacy servers, legacy clients at modern servers, and modern
// ones at both ends. (Legacy at both ends is matrix.mjs.) Modern clients reach the gateway with the keys of two people;
// legacy ones are told apart by their sessions, at a gateway without keys.
//
// Usage: node judge/eras.mjs        (CONTRAFLOW_BIN names the gateway; without it only the direct half runs)
// MODE=direct or MODE=through runs one half, ONLY=text the scenarios whose name contains it, CELL=ts2-py one cell
// (client-server). The direct half judges the judges: modern clients directly at modern servers.
// Cells that need a gateway which reaches modern servers say `todo` with MODERN_SERVERS=0; they count as nothing.
import { randomBytes } from 'node:crypto';
import { MODERN_SERVERS, HERE, RUN, runJudge, startGateway, startServer, stopAll } from './processes.mjs';
import { judgeRecords } from './records.mjs';
import { SDK_CLIENTS as CLIENTS, SDK_SERVERS as SERVERS } from './sdks.mjs';

const binary = process.env.CONTRAFLOW_BIN;
const mode = process.env.MODE ?? (binary ? 'both' : 'direct');
const keys = { ada: randomBytes(16).toString('hex'), bob: randomBytes(16).toString('hex') };
const total = { passed: 0, failed: 0 };

/** Runs the scenarios of one client at one server. */
async function cell(way, client, server, endpoint, upstream) {
  const title = `${way} ${client} client > ${server} server`;
  const { era, command: [program, ...script] } = CLIENTS[client];
  const env = { KEY_ADA: keys.ada, KEY_BOB: keys.bob, SERVER_ERA: SERVERS[server].era };
  const args = [...script, title, endpoint, upstream, ...(era === 'modern' ? [SERVERS[server].era] : [])];
  await runJudge(title, program, args, total, { env });
}

function check(name, good) {
  total[good ? 'passed' : 'failed'] += 1;
  console.log(`${good ? 'ok   ' : 'FAIL '} ${name}`);
}

/** Every client with every server that `fits`, and is asked for. */
function* cells(fits) {
  for (const client of Object.keys(CLIENTS)) {
    for (const server of Object.keys(SERVERS)) {
      const wanted = !process.env.CELL || process.env.CELL === `${client}-${server}`;
      if (wanted && fits(CLIENTS[client].era, SERVERS[server].era)) yield [client, server];
    }
  }
}

try {
  const urls = {};
  for (const [name, { command: [program, ...args] }] of Object.entries(SERVERS)) {
    urls[name] = await startServer(`server-${name}`, program, args);
  }
  if (mode !== 'through') {
    for (const [client, server] of cells((one, other) => one === 'modern' && other === 'modern')) {
      await cell('direct', client, server, urls[server], urls[server]);
    }
  }
  if (mode !== 'direct') {
    if (!binary) throw new Error('CONTRAFLOW_BIN must name the gateway');
    const endpoint = {
      legacy: await startGateway(binary, urls, { name: 'gateway-without-keys' }),
      modern: await startGateway(binary, urls, { keys }),
    };
    for (const [client, server] of cells((one, other) => one === 'modern' || other === 'modern')) {
      if (SERVERS[server].era === 'modern' && !MODERN_SERVERS) {
        console.log(`todo  gateway ${client} client > ${server} server: modern servers are switched off`);
        continue;
      }
      await cell('gateway', client, server, endpoint[CLIENTS[client].era](server), urls[server]);
    }
    await judgeRecords(binary, check, [keys.ada, keys.bob, 'a long story']);
  }
} catch (error) {
  total.failed += 1;
  console.log(`FAIL  ${error.message}`);
} finally {
  stopAll();
}
if (total.failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exit(total.failed === 0 ? 0 : 1);
