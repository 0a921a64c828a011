// Runs the official conformance suite directly against our servers, one of each era, and through the gateway in front of
// either, at both revisions, and compares the results check by check.
//
// Within an era the gateway must not show: statuses, warnings and skips are compared, and the details that a check
// recorded. Across eras (a modern suite, a legacy server, and the reverse) the answers are other ones, so statuses are
// compared with those that the suite gives a server of its own era. What can't be expressed in the server's era, or is
// meant to differ, is listed in KNOWN with its reason, and fails when the difference is gone.
// The suite's exit code says less than all that: a check may pass with a different answer, or be missing because its
// scenario ended early. Without CONTRAFLOW_BIN only the direct runs are made, where every check must be a success.
//
// Usage: node conformance/compare.mjs        Ends with `N passed, N failed`; a failure is a check that differs, or
// one that is no success in the direct run. ONLY=text narrows the runs down to those whose title contains it.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HERE, MODERN_SERVERS, RUN, run, startGateway, startServer, stopAll } from '../judge/processes.mjs';

/** The revision that stands for an era. */
const REVISION = { legacy: '2025-11-25', modern: '2026-07-28' };
/** Entries by which a scenario logs what it saw. A gateway may cut streams into other events than the server did. */
const LOG_ENTRIES = new Set(['outgoing-request', 'incoming-response', 'incoming-sse-event', 'stream-closed']);
/**
 * Checks whose details are the gateway's own: it answers a foreign Host and a request that its era forbids by itself,
 * with the status and code that the check wants, frames its own answers, says itself how soon a client
 * may come back, and asks again itself for an answer that does not fit.
 */
const OWN_DETAILS =
  /^(localhost-host-|server-sse-streams-functional|server-sse-retry-field|sep-2322-validate-input-responses|sep-2243-server-reject-|sep-2575-(request-meta-invalid|http-server-meta-invalid|server-unsupported-version|http-server-unsupported-version|http-server-header-mismatch)-)/;
/** Scenarios of an extension that our servers don't offer. */
const EXTENSION = /^tasks-/;
/**
 * What the gateway is known to do differently, by the eras of suite and server: check → [direct, gateway], and why.
 * A row whose difference is gone fails, so that this list stays true.
 */
const KNOWN = {
  // In a scenario that the revision does not score: the server ends the stream of a call to be polled. The gateway polls
  // it and keeps the client's stream open meanwhile, so that there is nothing for the client to come back to.
  'legacy > legacy': {
    'server-sse-disconnect-resume': ['SUCCESS', 'INFO'],
  },
  'modern > modern': {},
  'modern > legacy': {
    // A legacy server asks by request id; there is no key in its question that a gateway could pass on, and the suite
    // wants this very key (`user_name`). The scenario ends there.
    'sep-2322-elicitation-incomplete': ['SUCCESS', 'FAILURE'],
    'sep-2322-elicitation-complete': ['SUCCESS', 'MISSING'],
    // Answers ahead of any question, under that key and without a state: a legacy call can only be answered after it
    // asked, and the gateway asks. The suite warns.
    'sep-2322-ignore-unexpected-params': ['SUCCESS', 'WARNING'],
    // A header that mirrors an argument is not for a legacy server to ask for: the gateway takes the annotation out of
    // its lists. Not scored.
    'sep-2243-server-no-xmcp-tool': ['MISSING', 'FAILURE'],
    'sep-2243-server-decode-base64': ['SUCCESS', 'FAILURE'],
    'sep-2243-server-reject-invalid-param-chars': ['SUCCESS', 'FAILURE'],
    'sep-2243-server-reject-invalid-param-chars (2)': ['SUCCESS', 'MISSING'],
    'sep-2243-server-validate-param-match': ['SUCCESS', 'FAILURE'],
    'sep-2243-server-validate-param-match (2)': ['SUCCESS', 'MISSING'],
    'sep-2243-server-validate-param-match (3)': ['SUCCESS', 'MISSING'],
    'sep-2243-server-reject-param-mismatch': ['SUCCESS', 'FAILURE'],
    'sep-2243-server-reject-param-mismatch (2)': ['SUCCESS', 'MISSING'],
    'sep-2243-server-reject-param-mismatch (3)': ['SUCCESS', 'MISSING'],
  },
  'legacy > modern': {
    // The server answers in one piece, and so does the gateway: there is no stream to close and come back to.
    'server-sse-streams-functional': ['SUCCESS', 'INFO'],
    'server-sse-priming-event': ['SUCCESS', 'MISSING'],
    'server-sse-retry-field': ['SUCCESS', 'MISSING'],
    'server-sse-disconnect-resume': ['SUCCESS', 'MISSING'],
    'server-sse-content-type': ['MISSING', 'INFO'],
  },
};
const GOOD = new Set(['SUCCESS', 'INFO']);
const SUITE = join(HERE, '.work/node/node_modules/@modelcontextprotocol/conformance');

/** The scenarios that a revision scores. */
function scored(revision) {
  const text = readFileSync(join(SUITE, 'requirements', `${revision}.yaml`), 'utf8');
  return new Set([.../^server:\n((?: {2}- .*\n)+)/m.exec(text)[1].matchAll(/- (\S+)/g)].map(([, name]) => name));
}

/** Runs the suite; gives scenario → check id → what the check said, in order when an id occurs more than once. */
async function suite(title, revision, url) {
  const folder = join(RUN, `conformance-${title.replaceAll(/\W+/g, '-')}`);
  mkdirSync(folder);
  const bundle = join(SUITE, 'dist/index.js');
  const args = ['--import', './conformance/node20.mjs', bundle, 'server', '--url', url, '--requirements', revision];
  const lines = [];
  const started = Date.now();
  const code = await run(process.execPath, [...args, '-o', folder], (line) => lines.push(line));
  const scenarios = readScenarios(folder, url);
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  console.log(`${title}: ${scenarios.size} scenarios, exit code ${code}, ${seconds} s`);
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

/** Details without what differs from run to run: where the server is, ids of sessions, events and listens, how many. */
function comparable(details, url) {
  if (details === undefined) return '';
  const { host, pathname } = new URL(url);
  const volatile =
    /^(sessionId|sessionIdSent|id|eventId|lastEventId|lastEventIdUsed|eventCount|timestamp|requestState|.*\/subscriptionId|subscriptionId)$/;
  const text = JSON.stringify(details, (key, value) => (volatile.test(key) && value !== null ? `<${key}>` : value));
  return text.replaceAll(host, '<host>').replaceAll(pathname, '<path>');
}

/** The rows of a table; `through` is missing in a direct run. `across` eras only statuses are compared. */
function judge(direct, through, known, across) {
  const rows = [];
  for (const scenario of new Set([...direct.keys(), ...(through?.keys() ?? [])])) {
    if (EXTENSION.test(scenario)) continue;
    const left = direct.get(scenario) ?? new Map();
    const right = through ? (through.get(scenario) ?? new Map()) : left;
    for (const id of new Set([...left.keys(), ...right.keys()])) {
      const [one, two] = [left.get(id), right.get(id)];
      const status = [one?.status ?? 'MISSING', two?.status ?? 'MISSING'];
      const problems = [];
      const meant = through && known[id];
      if (meant && meant.join() === status.join()) {
        rows.push({ scenario, id, status, problems, meant });
        continue;
      }
      if (!GOOD.has(status[0])) problems.push(`direct: ${one?.error ?? status[0]}`);
      if (meant) problems.push(`known difference was ${meant.join(' / ')}: correct the list`);
      if (status[0] !== status[1]) {
        problems.push(`gateway: ${two?.error ?? status[1]}`, `answered: ${two?.details ?? ''}`);
      } else if (!across && !OWN_DETAILS.test(id) && one?.details !== two?.details) {
        problems.push('details differ', `direct:  ${one.details}`, `gateway: ${two.details}`);
      }
      rows.push({ scenario, id, status, problems });
    }
  }
  return rows;
}

let passed = 0;
let failed = 0;

function report(title, rows) {
  const width = Math.max(...rows.map(({ scenario }) => scenario.length));
  const idWidth = Math.max(...rows.map(({ id }) => id.length));
  console.log(`      ${title}`);
  for (const { scenario, id, status, problems, meant } of rows) {
    const verdict = problems.length > 0 ? 'FAIL' : meant ? 'known' : 'ok';
    if (problems.length === 0) passed++;
    else failed++;
    console.log(`${verdict.padEnd(5)} ${scenario.padEnd(width)}  ${id.padEnd(idWidth)}  ${status.map((s) => s.padEnd(7)).join('  ')}`.trimEnd());
    for (const problem of problems) console.log(`        ${problem}`);
  }
}

/** The suite's own verdict is that of the scored scenarios; it must be bad just where a known failure is among them. */
function reportVerdict(title, code, rows, revision) {
  const isScored = scored(revision);
  const excused = rows.filter(({ scenario, meant }) => meant?.[1] === 'FAILURE' && isScored.has(scenario));
  const good = code === (excused.length > 0 ? 1 : 0);
  if (good) passed++;
  else failed++;
  const except = excused.length > 0 ? `, except ${excused.map(({ scenario }) => scenario).join(', ')}` : '';
  console.log(`${good ? 'ok   ' : 'FAIL '} ${title}: the suite's own verdict for ${revision}${except}`);
  const bad = new Set(rows.filter(({ status, meant, problems }) => meant?.[1] === 'FAILURE' || problems.length > 0).map(({ scenario }) => scenario));
  const passing = [...isScored].filter((scenario) => !bad.has(scenario)).length;
  console.log(`      ${title}: ${passing} of ${isScored.size} scored scenarios pass`);
}

const wanted = (title) => title.includes(process.env.ONLY ?? '');
try {
  const servers = {
    legacy: await startServer('conformance-legacy', process.execPath, ['conformance/server.mjs']),
    modern: await startServer('conformance-modern', process.execPath, ['conformance/modern-server.mjs']),
  };
  const direct = {};
  for (const era of ['legacy', 'modern']) {
    const revision = REVISION[era];
    direct[era] = await suite(`direct, ${era}`, revision, servers[era]);
    const rows = judge(direct[era].scenarios, undefined, {});
    report(`${revision}, ${era} server, directly`, rows);
    reportVerdict('direct', direct[era].code, rows, revision);
  }
  const binary = process.env.CONTRAFLOW_BIN;
  const endpoint = binary && (await startGateway(binary, servers));
  for (const era of binary ? ['legacy', 'modern'] : []) {
    for (const server of ['legacy', 'modern']) {
      const title = `${era} > ${server}`;
      if (!wanted(title)) continue;
      if (server === 'modern' && !MODERN_SERVERS) {
        console.log(`todo  ${title}: modern servers are switched off`);
        continue;
      }
      const revision = REVISION[era];
      const through = await suite(`gateway, ${title}`, revision, endpoint(server));
      const rows = judge(direct[era].scenarios, through.scenarios, KNOWN[title], era !== server);
      report(`${revision}, ${server} server, through the gateway`, rows);
      reportVerdict(title, through.code, rows, revision);
    }
  }
} catch (error) {
  failed++;
  console.log(`FAIL  ${error.stack}`);
} finally {
  stopAll();
}
if (failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
