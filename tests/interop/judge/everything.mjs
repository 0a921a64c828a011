// The official everything server, over each of its transports, with official clients of both eras: what works directly
// works through the gateway, and what the server asks reaches clients of the modern era too.
//
// Each walk (clients/everything.mjs) says what came of each step. The one directly at the server, over the same transport,
// is what the others are compared with.
//
// Usage: node judge/everything.mjs        (CONTRAFLOW_BIN names the gateway; without it only the direct walks run)
import { HERE, RUN, auditOf, endGateway, freePort, run, serveGateway, startProgram, stopAll } from './processes.mjs';
import { join } from 'node:path';

const binary = process.env.CONTRAFLOW_BIN;
const NODE = process.execPath;
const SERVER = join(HERE, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const total = { passed: 0, failed: 0 };

function check(name, good, why = '') {
  total[good ? 'passed' : 'failed'] += 1;
  console.log(`${good ? 'ok   ' : 'FAIL '} ${name}${good ? '' : why}`);
}

/** Step → value, as text. */
async function walk(...args) {
  const steps = new Map();
  await run(NODE, ['clients/everything.mjs', ...args], (line) => {
    try {
      const { step, value } = JSON.parse(line);
      steps.set(step, JSON.stringify(value));
    } catch {
      console.log(line);
    }
  });
  return steps;
}

const excerpt = (text) => (text === undefined ? 'nothing' : text.length > 300 ? `${text.slice(0, 300)}…` : text);

try {
  const ports = { sse: await freePort(), http: await freePort() };
  const urls = { sse: `http://127.0.0.1:${ports.sse}/sse`, http: `http://127.0.0.1:${ports.http}/mcp` };
  const env = (port) => ({ PORT: String(port) });
  // Neither has a page to ask whether it is ready; one that is not there is an answer, too.
  const serve = (name, how, port) =>
    startProgram(name, NODE, [SERVER, how], `http://127.0.0.1:${port}/`, env(port), () => true);
  await serve('everything-sse', 'sse', ports.sse);
  await serve('everything-http', 'streamableHttp', ports.http);
  const direct = {
    stdio: await walk('legacy', 'stdio', NODE, SERVER, 'stdio'),
    sse: await walk('legacy', 'sse', urls.sse),
    http: await walk('legacy', 'http', urls.http),
  };
  for (const [transport, steps] of Object.entries(direct)) {
    for (const [step, value] of steps) check(`direct ${transport}: ${step}`, !value.includes('"failed: '), `: ${excerpt(value)}`);
    check(`direct ${transport}: all steps`, steps.size > 30, `: ${steps.size}`);
  }
  if (binary) {
    const port = await freePort();
    const config = [
      `listen: 127.0.0.1:${port}`,
      'servers:',
      `  over-stdio: { command: [${JSON.stringify(NODE)}, ${JSON.stringify(SERVER)}, stdio] }`,
      `  over-sse: { url: "${urls.sse}", transport: sse }`,
      `  over-http: { url: "${urls.http}" }`,
      `audit: { file: ${JSON.stringify(auditOf())} }`,
    ];
    await serveGateway(binary, port, `${config.join('\n')}\n`);
    for (const [transport, expected] of Object.entries(direct)) {
      for (const era of ['legacy', 'modern']) {
        const steps = await walk(era, 'http', `http://127.0.0.1:${port}/mcp/over-${transport}`);
        for (const [step, value] of expected) {
          const got = steps.get(step);
          check(`${era} client > gateway > ${transport}: ${step}`, got === value, `\n  direct   ${excerpt(value)}\n  through  ${excerpt(got)}`);
        }
      }
    }
    check('the gateway ends when it is told to', (await endGateway()) === 0);
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
