// Both official SDKs as clients, times both as servers, directly and through the gateway.
//
// Usage: node judge/matrix.mjs        (CONTRAFLOW_BIN names the gateway; without it only the direct half runs)
// MODE=direct or MODE=through runs one half, ONLY=text the scenarios whose name contains it, PAIR=ts-py one pair.
// The direct half judges the judges: what fails there says nothing about the gateway.
import { HERE, PYTHON, RUN, runJudge, startGateway, startServer, stopAll } from './processes.mjs';
import { judgeRecords } from './records.mjs';

const binary = process.env.CONTRAFLOW_BIN;
const mode = process.env.MODE ?? (binary ? 'both' : 'direct');
const clients = { ts: [process.execPath, 'clients/client.mjs'], py: [PYTHON, 'clients/client.py'] };
const total = { passed: 0, failed: 0 };

try {
  const servers = {
    ts: await startServer('server-ts', process.execPath, ['servers/server.mjs']),
    py: await startServer('server-py', PYTHON, ['servers/server.py']),
  };
  if (mode !== 'through') await half('direct', (server) => servers[server]);
  if (mode !== 'direct') {
    if (!binary) throw new Error('CONTRAFLOW_BIN must name the gateway');
    await half('gateway', await startGateway(binary, servers));
    // The credential of clients, and what people answered and typed.
    await judgeRecords(binary, check, ['inbound-canary', 'größer', 'a long story']);
  }

  function check(name, good) {
    total[good ? 'passed' : 'failed'] += 1;
    console.log(`${good ? 'ok   ' : 'FAIL '} ${name}`);
  }

  async function half(name, endpoint) {
    for (const client of Object.keys(clients)) {
      for (const server of Object.keys(servers)) {
        if (process.env.PAIR && process.env.PAIR !== `${client}-${server}`) continue;
        const [command, ...script] = clients[client];
        const args = [...script, `${name} ${client} client > ${server} server`, endpoint(server), servers[server]];
        await runJudge(`${name} ${client} client > ${server} server`, command, args, total);
      }
    }
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
