// The official SDKs of the legacy era as clients of HTTP+SSE, the transport of 2024-11-05, at all servers: the scenarios
// of matrix.mjs, on the one stream that is the session.
//
// Usage: CONTRAFLOW_BIN=… node judge/oldest.mjs        (nothing runs without a gateway: no server here speaks it)
// ONLY=text runs the scenarios whose name contains it, CELL=py-ts2 one cell (client-server; `2` is the modern SDK).
import { MODERN_SERVERS, HERE, RUN, run, startGateway, startServer, stopAll } from './processes.mjs';
import { judgeRecords } from './records.mjs';
import { SDK_CLIENTS, SDK_SERVERS } from './sdks.mjs';

const binary = process.env.CONTRAFLOW_BIN;
const total = { passed: 0, failed: 0 };

function check(name, good) {
  total[good ? 'passed' : 'failed'] += 1;
  console.log(`${good ? 'ok   ' : 'FAIL '} ${name}`);
}

/** Runs the scenarios of one client at one server. */
async function cell(client, server, endpoint, upstream) {
  const title = `gateway ${client} client by HTTP+SSE > ${server} server`;
  const [program, ...script] = SDK_CLIENTS[client].command;
  let counted = false;
  await run(program, [...script, title, endpoint, upstream], (line) => {
    const sum = /^(\d+) passed, (\d+) failed$/.exec(line);
    if (!sum) return console.log(line);
    counted = true;
    total.passed += Number(sum[1]);
    total.failed += Number(sum[2]);
  }, { env: { SERVER_ERA: SDK_SERVERS[server].era } });
  if (!counted) check(`${title}: the client ended without a count`, false);
}

try {
  const urls = {};
  const servers = Object.entries(SDK_SERVERS).filter(([, { era }]) => era === 'legacy' || MODERN_SERVERS);
  if (binary) {
    for (const [name, { command: [program, ...args] }] of servers) {
      urls[name] = await startServer(`server-${name}`, program, args);
    }
    const endpoint = await startGateway(binary, urls, { more: 'legacy_sse: true\n' });
    for (const client of Object.keys(SDK_CLIENTS).filter((name) => SDK_CLIENTS[name].era === 'legacy')) {
      for (const server of Object.keys(urls)) {
        if (process.env.CELL && process.env.CELL !== `${client}-${server}`) continue;
        await cell(client, server, `${endpoint(server)}/sse`, urls[server]);
      }
    }
    // The credential of clients, and what people answered and typed.
    await judgeRecords(binary, check, ['inbound-canary', 'größer', 'a long story']);
  }
} catch (error) {
  check(error.message, false);
} finally {
  stopAll();
}
if (total.failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exit(total.failed === 0 ? 0 : 1);
