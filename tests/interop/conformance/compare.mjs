// Runs the official conformance suite twice, directly against our server and through the gateway, and compares the
// two results check by check: statuses, warnings and skips too, and the details that a check recorded.
//
// The suite's exit code says less than that: a check may pass with a different answer, or be missing because its
// scenario ended early. Without CONTRAFLOW_BIN only the direct half runs and every check must be a success.
//
// With the gateway the suite runs a third time, in front of a server of 2026-07-28 and nothing else (modern.mjs).
//
// Usage: node conformance/compare.mjs        Ends with `N passed, N failed`; a failure is a check that differs, or
// one that is no success in the direct run.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HERE, RUN, run, startGateway, startServer, stopAll } from '../judge/processes.mjs';

const REVISION = '2025-11-25';
/** Entries by which a scenario logs what it saw. A gateway may cut streams into other events than the server did. */
const LOG_ENTRIES = new Set(['outgoing-request', 'incoming-response', 'incoming-sse-event', 'stream-closed']);
/** Checks whose details are the gateway's own: it answers a foreign Host itself and frames its own answers. */
const OWN_DETAILS = new Set([
  'localhost-host-rebinding-rejected',
  'localhost-host-valid-accepted',
  'server-sse-streams-functional',
]);
/**
 * What the gateway is known to do differently, and why that is meant. A row whose difference is gone fails, so that
 * this list stays true. All of it is the SHOULD of resumable streams, in a scenario that the revision does not score:
 * the gateway takes up a broken stream toward the server by itself and keeps the client's stream open meanwhile, so
 * that there is nothing for the client to resume. The answer itself arrives: the scenario ends early otherwise.
 */
const KNOWN = {
  'server-sse-priming-event': ['SUCCESS', 'WARNING'],
  'server-sse-retry-field': ['SUCCESS', 'WARNING'],
  'server-sse-disconnect-resume': ['SUCCESS', 'INFO'],
};
const GOOD = new Set(['SUCCESS', 'INFO']);
/** What a server without sessions and resumable streams can't give, in scenarios that the revision does not score. */
const NOT_ACROSS = new Set(['server-sse-priming-event', 'server-sse-retry-field', 'server-sse-disconnect-resume']);

/** Runs the suite; gives scenario → check id → what the check said, in order when an id occurs more than once. */
async function suite(name, url) {
  const folder = join(RUN, `conformance-${name}`);
  mkdirSync(folder);
  const bundle = join(HERE, '.work/node/node_modules/@modelcontextprotocol/conformance/dist/index.js');
  const args = ['--import', './conformance/node20.mjs', bundle, 'server', '--url', url, '--requirements', REVISION];
  const lines = [];
  const started = Date.now();
  const code = await run(process.execPath, [...args, '-o', folder], (line) => lines.push(line));
  const scenarios = readScenarios(folder, url);
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  console.log(`${name}: ${scenarios.size} scenarios, exit code ${code}, ${seconds} s`);
  if (scenarios.size === 0) throw new Error(`the suite did not run:\n${lines.slice(-20).join('\n')}`);
  return { code, scenarios };
}

function readScenarios(folder, url) {
  const scenarios = new Map();
  for (const entry of readdirSync(folder).sort()) {
    const scenario = entry.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
    const checks = new Map();
    const occurrences = new Map();
    for (const check of JSON.parse(readFileSync(join(folder, entry, 'checks.json'), 'utf8'))) {
      if (LOG_ENTRIES.has(check.id) && check.status === 'INFO') continue;
      const nth = (occurrences.get(check.id) ?? 0) + 1;
      occurrences.set(check.id, nth);
      const id = nth === 1 ? check.id : `${check.id} (${nth})`;
      checks.set(id, { status: check.status, error: check.errorMessage, details: comparable(check.details, url) });
    }
    scenarios.set(scenario, checks);
  }
  return scenarios;
}

/** Details without what differs from run to run: where the server is, ids of sessions and events, how many events. */
function comparable(details, url) {
  if (details === undefined) return '';
  const { host, pathname } = new URL(url);
  const volatile = /^(sessionId|sessionIdSent|id|eventId|lastEventId|lastEventIdUsed|eventCount|timestamp)$/;
  const text = JSON.stringify(details, (key, value) => (volatile.test(key) && value !== null ? `<${key}>` : value));
  return text.replaceAll(host, '<host>').replaceAll(pathname, '<path>');
}

function judge(direct, through) {
  const rows = [];
  for (const scenario of new Set([...direct.keys(), ...(through?.keys() ?? [])])) {
    const left = direct.get(scenario) ?? new Map();
    const right = through ? (through.get(scenario) ?? new Map()) : left;
    for (const id of new Set([...left.keys(), ...right.keys()])) {
      const [one, two] = [left.get(id), right.get(id)];
      const status = [one?.status ?? 'MISSING', two?.status ?? 'MISSING'];
      const problems = [];
      const known = through && KNOWN[id];
      if (!GOOD.has(status[0])) problems.push(`direct: ${one?.error ?? status[0]}`);
      if (known && known.join() === status.join()) {
        rows.push({ scenario, id, status, problems, known });
        continue;
      }
      if (known) problems.push(`known difference was ${known.join(' / ')}: correct the list`);
      if (status[0] !== status[1]) problems.push(`gateway: ${two?.error ?? status[1]}`);
      else if (!OWN_DETAILS.has(id) && one?.details !== two?.details) {
        problems.push('details differ', `direct:  ${one.details}`, `gateway: ${two.details}`);
      }
      rows.push({ scenario, id, status, problems });
    }
  }
  return rows;
}

/** The same suite in front of a server that knows only 2026-07-28: there is no direct run to compare with. */
async function across(url) {
  const { code, scenarios } = await suite('across', url);
  for (const [scenario, checks] of scenarios) {
    for (const [id, { status, error }] of checks) {
      if (GOOD.has(status) || NOT_ACROSS.has(id)) {
        passed++;
      } else {
        failed++;
        console.log(`FAIL  across: ${scenario} ${id}: ${error ?? status}`);
      }
    }
  }
  if (code === 0) passed++;
  else failed++;
  console.log(`${code === 0 ? 'ok   ' : 'FAIL '} across: the suite's own verdict for ${REVISION} in front of a modern server`);
}

let passed = 0;
let failed = 0;
try {
  const server = await startServer('conformance-server', process.execPath, ['conformance/server.mjs']);
  const direct = await suite('direct', server);
  let through;
  if (process.env.CONTRAFLOW_BIN) {
    const modern = await startServer('conformance-modern', process.execPath, ['conformance/modern.mjs']);
    const endpoint = await startGateway(process.env.CONTRAFLOW_BIN, { conformance: server, modern });
    through = await suite('gateway', endpoint('conformance'));
    await across(endpoint('modern'));
  }
  const rows = judge(direct.scenarios, through?.scenarios);
  const width = Math.max(...rows.map(({ scenario }) => scenario.length));
  const idWidth = Math.max(...rows.map(({ id }) => id.length));
  console.log(`      ${'scenario'.padEnd(width)}  ${'check'.padEnd(idWidth)}  direct   ${through ? 'gateway' : ''}`);
  for (const { scenario, id, status, problems, known } of rows) {
    const verdict = problems.length > 0 ? 'FAIL' : known ? 'known' : 'ok';
    if (problems.length === 0) passed++;
    else failed++;
    const shown = through ? status : status.slice(0, 1);
    console.log(`${verdict.padEnd(5)} ${scenario.padEnd(width)}  ${id.padEnd(idWidth)}  ${shown.map((s) => s.padEnd(7)).join('  ')}`.trimEnd());
    for (const problem of problems) console.log(`        ${problem}`);
  }
  for (const [name, { code }] of Object.entries({ direct, ...(through && { gateway: through }) })) {
    if (code === 0) passed++;
    else failed++;
    console.log(`${code === 0 ? 'ok   ' : 'FAIL '} ${name}: the suite's own verdict for ${REVISION}`);
  }
} catch (error) {
  failed++;
  console.log(`FAIL  ${error.message}`);
} finally {
  stopAll();
}
if (failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
