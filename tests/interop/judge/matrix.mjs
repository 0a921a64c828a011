// Both official SDKs as clients, times both as servers, directly and through the gateway.
//
// Usage: node judge/matrix.mjs        (CONTRAFLOW_BIN names the gateway; without it only the direct half runs)
// MODE=direct or MODE=through runs one half, ONLY=text the scenarios whose name contains it, PAIR=ts-py one pair.
// The direct half judges the judges: what fails there says nothing about the gateway.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HERE, PYTHON, RUN, UPSTREAM_KEY, endGateway, run, startGateway, startServer, stopAll } from './processes.mjs';

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
    await afterwards();
  }

  /** What must hold of everything that the gateway wrote while the clients were there. */
  async function afterwards() {
    check('gateway: SIGTERM ends it with exit code 0', (await endGateway()) === 0);
    const audit = join(RUN, 'audit.jsonl');
    const verified = await run(binary, ['audit', 'verify', audit], (line) => console.log(`      ${line}`));
    check('gateway: the chain of its audit log is intact', verified === 0);
    const wrote = readFileSync(audit, 'utf8') + readFileSync(join(RUN, 'gateway.log'), 'utf8');
    // The credential of clients, the header for servers, and what people answered and typed.
    for (const secret of ['inbound-canary', UPSTREAM_KEY, 'Zoë', 'pay-7?a=1', 'größer', 'a long story']) {
      check(`gateway: ${JSON.stringify(secret)} is nowhere in its logs`, !wrote.includes(secret));
    }
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
        let counted = false;
        await run(command, args, (line) => {
          const sum = /^(\d+) passed, (\d+) failed$/.exec(line);
          if (!sum) return console.log(line);
          counted = true;
          total.passed += Number(sum[1]);
          total.failed += Number(sum[2]);
        });
        if (!counted) {
          total.failed += 1;
          console.log(`FAIL  ${name} ${client} client > ${server} server: the client ended without a count`);
        }
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
