// What an operator's policy for questions does to the official SDKs: the clients of both eras, at servers of both eras,
// are asked, spared, or asked again, as the gateway is configured, and servers learn the right action.
//
// In front of each server stands a gateway on which every policy below is a server of its own. A case is one call of one
// tool by one client (clients/policy.*); its expectation stands here once, for all clients and servers.
//
// Usage: node judge/policy.mjs        (CONTRAFLOW_BIN names the gateway; without it there is nothing to run)
// CELL=ts2-py narrows it down to one client and server, ONLY=text to the cases whose name contains it.
import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SDK_CLIENTS, SDK_SERVERS } from './sdks.mjs';
import { HERE, RUN, auditOf, freePort, run, serveGateway, startServer, stopAll } from './processes.mjs';
import { judgeRecords } from './records.mjs';

const HOOKS = join(HERE, '../../config/hooks');
const keys = { ada: randomBytes(16).toString('hex'), robot: randomBytes(16).toString('hex') };

/** Name → what a server of that name has beside its URL (flow YAML). */
const POLICIES = {
  plain: '',
  decline: 'questions: { elicitation: decline }',
  cancel: 'questions: { elicitation: cancel }',
  refuse: 'questions: { elicitation: refuse, sampling: refuse, roots: refuse }',
  ruled: `questions: { rules: [
      { name: mine, when: 'arguments.message == "not for rules"', pass: true },
      { when: 'tool == "book"', accept: { party_size: 3, seating: terrace, note: by the house } },
      { when: 'message == "no"', decline: true }, { when: 'message == "shut"', cancel: true },
      { when: 'message == "never"', refuse: true }, { when: 'mode == "url"', accept: {} } ] }`,
  booking: `questions: { hooks: { before: { command: ["${HOOKS}/auto-fill.sh"] } } }`,
  checked: `questions: { hooks: { after: { command: ["${HOOKS}/check-names.sh"] } } }`,
  absent: 'questions: { when_client_cannot: decline }',
  gone: 'questions: { when_client_cannot: cancel }',
  labelled: 'questions: { label: true }',
  flagged: 'questions: { secrets: flag }',
  elsewhere: 'questions: { urls: { hosts: ["*.example.org"] } }',
  hurried: 'questions: { timeout: 1s, on_timeout: decline }',
  guarded: 'approve: ["remove*"]',
};

const accept = (content) => ({ action: 'accept', content });
const DECLINE = { action: 'decline' };
const CANCEL = { action: 'cancel' };
/** The person says nothing, ever. */
const SILENCE = null;
const HEADLESS = { 'x-contraflow-headless': '1' };
const BOOK = 'How many, and where?';
const TABLE = 'How many people, and under which name?';
const RIGHT = accept({ party_size: 4, seating: 'inside' });
const TOO_MANY = accept({ party_size: 99, seating: 'inside' });
const NO_SUCH_SEAT = accept({ party_size: 2, seating: 'on the roof' });
/** Why a tool failed that may not ask what it asks. Servers and clients of some SDKs find that out by themselves. */
const UNABLE = /not support|not offer|not declare|can't be asked|does not allow/;
const AGAIN = (message) => new RegExp(`^${message.replace('?', '\\?')}\\s+Please answer again`);

/**
 * The cases: what happens, the policy, the tool with its arguments, what the person answers to each question in turn,
 * and what is to come out of it: what the tool says, or (as a pattern) how it fails, and which messages the person
 * reads. `can: false` is a client that declares no abilities; `only` names the one client that can play it.
 */
const CASES = [
  ['a person accepts', 'plain', 'book', {}, [RIGHT], 'booked: 4 inside -', [BOOK]],
  ['a person declines', 'plain', 'book', {}, [DECLINE], 'no booking: decline', [BOOK]],
  ['a person cancels', 'plain', 'book', {}, [CANCEL], 'no booking: cancel', [BOOK]],
  ['a person consents to an address', 'plain', 'open_url', { id: 'pay-1' }, [{ action: 'accept' }], 'url: accept', ['Please pay']],

  ['all forms are declined', 'decline', 'book', {}, [RIGHT], 'no booking: decline', []],
  ['all forms are cancelled', 'cancel', 'book', {}, [RIGHT], 'no booking: cancel', []],
  ['all forms are refused', 'refuse', 'book', {}, [RIGHT], UNABLE, []],
  ['sampling is refused', 'refuse', 'summarize', { text: 'a long story' }, [], UNABLE, []],
  ['roots are refused', 'refuse', 'where', {}, [], UNABLE, []],

  ['a rule accepts with content', 'ruled', 'book', {}, [RIGHT], 'booked: 3 terrace by the house', []],
  ['a rule accepts an address', 'ruled', 'open_url', { id: 'pay-2' }, [DECLINE], 'url: accept', []],
  ['a rule declines', 'ruled', 'ask', { message: 'no' }, [RIGHT], 'decline', []],
  ['a rule cancels', 'ruled', 'ask', { message: 'shut' }, [RIGHT], 'cancel', []],
  ['a rule refuses', 'ruled', 'ask', { message: 'never' }, [RIGHT], /not allowed|does not allow|refused/i, []],
  ['a rule passes', 'ruled', 'ask', { message: 'not for rules' }, [accept({ answer: 'mine' })], 'mine', ['not for rules']],
  ['no rule fits', 'ruled', 'ask', { message: 'Who?' }, [accept({ answer: 'ada' })], 'ada', ['Who?']],

  ['the hook before fills in', 'booking', 'book_table', {}, [DECLINE], 'table: 2 Front desk', []],
  ['the hook before has no opinion', 'booking', 'book', {}, [RIGHT], 'booked: 4 inside -', [BOOK]],
  ['the hook after changes', 'checked', 'book_table', {}, [accept({ guests: 5, name: '  Mira ' })], 'table: 5 Mira', [TABLE]],
  ['the hook after rejects', 'checked', 'book_table', {}, [accept({ guests: 5, name: ' Al ' })], 'no table: decline', [TABLE]],
  ['the hook after has no opinion', 'checked', 'book', {}, [RIGHT], 'booked: 4 inside -', [BOOK]],

  ['a wrong answer, then a right one', 'plain', 'book', {}, [TOO_MANY, RIGHT], 'booked: 4 inside -', [BOOK, AGAIN(BOOK)]],
  ['two wrong answers, then a right one', 'plain', 'book', {}, [TOO_MANY, NO_SUCH_SEAT, RIGHT], 'booked: 4 inside -', [BOOK, AGAIN(BOOK), AGAIN(BOOK)]],
  ['three wrong answers', 'plain', 'book', {}, [TOO_MANY, NO_SUCH_SEAT, TOO_MANY], 'no booking: cancel', [BOOK, AGAIN(BOOK), AGAIN(BOOK)]],
  ['a wrong answer, then none', 'plain', 'book', {}, [TOO_MANY, DECLINE], 'no booking: decline', [BOOK, AGAIN(BOOK)]],

  // A modern client is silent by never coming back, and Python's reads nothing while its person thinks (README.md).
  ['nobody answers in time', 'hurried', 'book', {}, [SILENCE], 'no booking: decline', [BOOK], { only: 'ts' }],

  ['a form that asks for a password', 'plain', 'sign_in', {}, [accept({ user: 'ada', password: 'hunter-1' })], /secret/i, []],
  ['a form that asks for a password, with a warning', 'flagged', 'sign_in', {}, [accept({ user: 'ada', password: 'hunter-2' })], 'sign in: accept', [/\n\nPlease sign in$/]],
  ['an address that is not allowed', 'elsewhere', 'open_url', { id: 'pay-3' }, [{ action: 'accept' }], /host pay\.example is not allowed|address/i, []],
  ['a label', 'labelled', 'ask', { message: 'Who?' }, [accept({ answer: 'ada' })], 'ada', ['[labelled] Who?']],

  ['headless, with a rule', 'ruled', 'book', {}, [RIGHT], 'booked: 3 terrace by the house', [], { headers: HEADLESS }],
  ['headless, declined', 'absent', 'book', {}, [RIGHT], 'no booking: decline', [], { headers: HEADLESS }],
  ['headless, cancelled', 'gone', 'book', {}, [RIGHT], 'no booking: cancel', [], { headers: HEADLESS }],
  ['headless, undeclared', 'plain', 'book', {}, [RIGHT], UNABLE, [], { headers: HEADLESS }],
  ['a headless key', 'absent', 'book', {}, [RIGHT], 'no booking: decline', [], { key: 'robot' }],
  ['who can be asked is asked all the same', 'absent', 'book', {}, [RIGHT], 'booked: 4 inside -', [BOOK]],
  ['no ability, with a rule', 'ruled', 'book', {}, [], 'booked: 3 terrace by the house', [], { can: false }],
  ['no ability, declined', 'absent', 'book', {}, [], 'no booking: decline', [], { can: false }],
  ['no ability, cancelled', 'gone', 'book', {}, [], 'no booking: cancel', [], { can: false }],
  ['no ability, undeclared', 'plain', 'book', {}, [], UNABLE, [], { can: false }],

  ['an approved tool runs', 'guarded', 'remove', { label: 'a' }, [accept({})], 'removed', [/remove[\s\S]*a/]],
  ['… and has run', 'plain', 'was_removed', { label: 'a' }, [], 'true', []],
  ['a declined tool does not run', 'guarded', 'remove', { label: 'b' }, [DECLINE], /not approved/, [/remove[\s\S]*b/]],
  ['… and has not run', 'plain', 'was_removed', { label: 'b' }, [], 'false', []],
  ['a tool that nobody can approve does not run', 'guarded', 'remove', { label: 'c' }, [accept({})], /nobody can be asked/, [], { headers: HEADLESS }],
  ['… and has not run, either', 'plain', 'was_removed', { label: 'c' }, [], 'false', []],
  ['a tool that needs no approval runs', 'guarded', 'echo', { text: 'hello' }, [], 'hello', []],
];

const total = { passed: 0, failed: 0 };
function check(name, good, more = '') {
  total[good ? 'passed' : 'failed'] += 1;
  console.log(`${good ? 'ok   ' : 'FAIL '} ${name}${good ? '' : more}`);
}

/** The configuration of the gateway in front of one server. */
function config(port, url, audit) {
  const servers = Object.entries(POLICIES).map(([name, policy]) => `  ${name}: { url: "${url}"${policy && `, ${policy}`} }`);
  const people = Object.entries(keys).map(([name, key]) => {
    const sha256 = createHash('sha256').update(key).digest('hex');
    return `    - { name: ${name}, sha256: ${sha256}, headless: ${name === 'robot'} }`;
  });
  const lines = [`listen: 127.0.0.1:${port}`, 'servers:', ...servers, 'auth:', '  api_keys:', ...people];
  return [...lines, `audit: { file: ${JSON.stringify(audit)} }`, ''].join('\n');
}

/** What a client is to do. A label is one of this client's. */
function task(client, at, [name, policy, tool, args, says, , , { headers = {}, key = 'ada', can = true } = {}]) {
  const authorization = `Bearer ${keys[key]}`;
  const own = args.label ? { label: `${client}-${args.label}` } : args;
  return { name, url: at(policy), headers: { ...headers, authorization }, can, tool, args: own, says };
}

function fits(expected, value) {
  return expected instanceof RegExp ? typeof value === 'string' && expected.test(value) : expected === value;
}

/** Whether a case came out as expected. */
function judged([, , , , , end, asked], outcome) {
  const ended = end instanceof RegExp ? fits(end, outcome.failed) : outcome.failed === null && outcome.said === end;
  const seen = outcome.asked ?? [];
  return ended && !outcome.others && seen.length === asked.length && asked.every((one, i) => fits(one, seen[i]));
}

/** Plays all cases of a client at a server. */
async function cell(client, server, at) {
  const { era, play: [program, script] } = SDK_CLIENTS[client];
  const only = process.env.ONLY ?? '';
  const cases = CASES.filter(([name, , , , , , , more]) => name.includes(only) && [undefined, client].includes(more?.only));
  const file = join(RUN, `cases-${client}-${server}.json`);
  writeFileSync(file, JSON.stringify(cases.map((one) => task(client, at, one))));
  let next = 0;
  await run(program, [script, era, file], (line) => {
    if (!line.startsWith('{"name":')) return;
    const outcome = JSON.parse(line);
    const one = cases[next++];
    check(`${client} client > ${server} server: ${one[0]}`, judged(one, outcome), `\n      ${line}`);
  });
  for (const [name] of cases.slice(next)) check(`${client} client > ${server} server: ${name}`, false);
}

try {
  const binary = process.env.CONTRAFLOW_BIN;
  if (!binary) {
    console.log('todo  without a gateway there is no policy: CONTRAFLOW_BIN names it');
  } else {
    for (const [server, { command: [program, ...args] }] of Object.entries(SDK_SERVERS)) {
      const cells = Object.keys(SDK_CLIENTS).filter((client) => [undefined, `${client}-${server}`].includes(process.env.CELL));
      if (cells.length === 0) continue;
      const url = await startServer(`server-${server}`, program, args);
      const [name, port] = [`gateway-${server}`, await freePort()];
      await serveGateway(binary, port, config(port, url, auditOf(name)), name);
      await Promise.all(cells.map((client) => cell(client, server, (policy) => `http://127.0.0.1:${port}/mcp/${policy}`)));
      await judgeRecords(binary, check, [...Object.values(keys), 'hunter-', 'by the house', 'Front desk', 'Mira', 'a long story'], name);
    }
  }
} catch (error) {
  check('the run', false, `: ${error.stack}`);
} finally {
  stopAll();
}
if (total.failed > 0) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exit(total.failed === 0 ? 0 : 1);
