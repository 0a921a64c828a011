// Walks hostile credentials through a running gateway and judges its answers from outside.
//
//   node hostile.mjs [gateway URL] [IdP URL] [--all]
//
// Defaults: http://127.0.0.1:8080 and http://127.0.0.1:23000. The gateway runs with gateway.yaml, the IdP is server.mjs,
// both freshly started; this script plays the servers behind the gateway (UPSTREAM_PORT, default 23060) and
// sees what reaches them. `--all` adds the key-set faults that have to wait for the gateway's cool-down each time.
// Prints every check and `N passed, N failed`; exit code 0 when none failed.
import http from 'node:http';
import crypto from 'node:crypto';

const args = process.argv.slice(2).filter((arg) => !arg.startsWith('--'));
const GATEWAY = (args[0] ?? 'http://127.0.0.1:8080').replace(/\/$/, '');
const IDP = (args[1] ?? 'http://127.0.0.1:23000').replace(/\/$/, '');
const ALL = process.argv.includes('--all');
const UPSTREAM_PORT = Number(process.env.UPSTREAM_PORT ?? 23060);
const API_KEY = 'hostile-test-key';
const COOL_DOWN = 31_000; // the gateway fetches keys for an unknown id at most once in 30 s
const SERVERS = ['a', 'b', 'c'];

let passed = 0, failed = 0;
const check = (name, good, detail) => {
  if (good) { passed += 1; console.log(`ok   ${name}`); } else { failed += 1; console.log(`FAIL ${name}: ${detail}`); }
};
const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });
const endpoint = (server) => `${GATEWAY}/mcp/${server}`;
const metadataUrl = (server) => `${GATEWAY}/.well-known/oauth-protected-resource/mcp/${server}`;

// ---------- the servers behind the gateway ----------
const seen = []; // every request that reached one of them
let trapped = 0; // requests to a place where only a followed redirect leads
const upstream = http.createServer(async (req, res) => {
  const chunks = []; for await (const chunk of req) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString();
  if (req.url.startsWith('/trap')) { trapped += 1; res.end('{"keys":[]}'); return; }
  seen.push(`${req.method} ${req.url} ${JSON.stringify(req.rawHeaders)} ${body}`);
  let message; try { message = JSON.parse(body); } catch { message = {}; }
  if (message.method !== 'initialize') { res.writeHead(req.method === 'POST' ? 202 : 405); res.end(); return; }
  const result = { protocolVersion: message.params.protocolVersion, capabilities: {}, serverInfo: { name: 'target', version: '1' } };
  res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': crypto.randomUUID() });
  res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
});

// ---------- asking ----------
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'hostile', version: '1' } },
});
let accepted = 0;
// fetch() would join repeated headers, so requests are written with node:http.
function ask(server, headers, path = '') {
  const url = new URL(endpoint(server) + path);
  return new Promise((done) => {
    const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'content-length': Buffer.byteLength(initialize), ...headers };
    const req = http.request(url, { method: 'POST', headers: all, agent: false }, (res) => {
      const chunks = [];
      res.on('data', (chunk) => chunks.push(chunk));
      res.on('end', () => {
        if (res.statusCode === 200) accepted += 1;
        done({ status: res.statusCode, challenge: res.headers['www-authenticate'], retryAfter: res.headers['retry-after'], body: Buffer.concat(chunks).toString() });
      });
    });
    req.on('error', (error) => done({ status: 0, body: String(error) }));
    req.end(initialize);
  });
}
const bearer = (token, server = 'a') => ask(server, { authorization: `Bearer ${token}` });
const dev = async (path) => {
  const answer = await fetch(`${IDP}/dev/${path}`);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the IdP answered ${answer.status} to ${path}: ${text}`);
  return text;
};
const control = async (path) => JSON.parse(await dev(path));
const mint = (options = {}) => dev(`token?${new URLSearchParams({ aud: endpoint('a'), ...options })}`);
const jwksFetches = async () => (await control('stats')).jwks ?? 0;

// A token whose key id nobody has: its signature is never looked at, so it need not fit.
function madeUpKey(token) {
  const [header, ...rest] = token.split('.');
  const changed = { ...JSON.parse(Buffer.from(header, 'base64url')), kid: crypto.randomBytes(8).toString('hex') };
  return [Buffer.from(JSON.stringify(changed)).toString('base64url'), ...rest].join('.');
}
const refused = (answer) => answer.status === 401 && answer.challenge?.startsWith('Bearer error="invalid_token"')
  && answer.challenge.includes(`resource_metadata="${metadataUrl('a')}"`);
const show = (answer) => `${answer.status} ${answer.challenge ?? ''} ${answer.body.slice(0, 200)}`;

async function until(what, condition, limit = COOL_DOWN + 5_000) {
  const end = Date.now() + limit;
  while (Date.now() < end) { if (await condition()) return true; await sleep(250); }
  console.log(`     gave up waiting: ${what}`);
  return false;
}

// ---------- the checks ----------
async function loginIsFound() {
  const answer = await ask('a', {});
  check('no token: 401 with the way to the login', answer.status === 401 && answer.challenge === `Bearer resource_metadata="${metadataUrl('a')}"`, show(answer));
  for (const server of SERVERS) {
    const response = await fetch(metadataUrl(server), { headers: { 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'https' } });
    const document = response.ok ? await response.json() : {};
    check(`metadata of ${server}`, document.resource === endpoint(server) && document.authorization_servers?.[0] === IDP, JSON.stringify(document));
  }
  check('metadata of an unknown server: 404', (await fetch(metadataUrl('unknown'))).status === 404, 'found');
}

async function audiencesAreKeptApart() {
  for (const audience of SERVERS) {
    const token = await mint({ aud: endpoint(audience) });
    for (const server of SERVERS) {
      const answer = await bearer(token, server);
      check(`token for ${audience} at ${server}`, answer.status === (audience === server ? 200 : 401), show(answer));
    }
  }
}

async function credentialsComeInHeaders() {
  const token = await mint();
  const rows = [
    ['scheme in other case', { authorization: `bEaReR ${token}` }, '', 200],
    ['token in the query', {}, `?access_token=${token}`, 401],
    ['API key in the query', {}, `?api_key=${API_KEY}&x-api-key=${API_KEY}`, 401],
    ['two Authorization headers', { authorization: [`Bearer ${token}`, `Bearer ${token}`] }, '', 400],
    ['token and API key', { authorization: `Bearer ${token}`, 'x-api-key': API_KEY }, '', 400],
    ['other scheme', { authorization: `Basic ${token}` }, '', 401],
    ['empty bearer', { authorization: 'Bearer ' }, '', 401],
    ['two dots missing', { authorization: `Bearer ${token.replaceAll('.', '')}` }, '', 401],
    ['API key as bearer', { authorization: `Bearer ${API_KEY}` }, '', 200],
    ['API key in its header', { 'x-api-key': API_KEY }, '', 200],
    ['other API key', { 'x-api-key': `${API_KEY}2` }, '', 401],
  ];
  for (const [name, headers, path, status] of rows) {
    const answer = await ask('a', headers, path);
    check(name, answer.status === status, show(answer));
  }
  const elsewhere = await ask('b', { 'x-api-key': API_KEY });
  check('API key at a server it does not open: 403, no challenge', elsewhere.status === 403 && !elsewhere.challenge, show(elsewhere));
}

async function gracefulRotation() {
  const old = await mint();
  await control('rotate?mode=graceful&alg=ES256');
  const answer = await bearer(await mint());
  check('graceful rotation: first token of the new key', answer.status === 200, show(answer));
  check('graceful rotation: the old key still counts', (await bearer(old)).status === 200, 'refused');
}

async function hostileTokens() {
  const fine = new Set(['just-expired', 'aud-array', 'no-kid']);
  await control('stats?reset=1');
  for (const attack of await control('attacks')) {
    const answer = await bearer(await mint({ attack }));
    // The token of 200 kB may already be too much for the HTTP reader.
    const tooMuch = attack === 'huge' && [0, 400, 413, 431].includes(answer.status);
    check(`attack ${attack}`, fine.has(attack) ? answer.status === 200 : refused(answer) || tooMuch, show(answer));
  }
  const fetches = await jwksFetches();
  check('hostile tokens cause at most two fetches of keys', fetches <= 2, fetches);
  const evil = (await dev('log')).split('\n').filter((line) => line.includes('/dev/evil'));
  check('no key is fetched from where a token says', evil.length === 0, evil.join());
}

async function storm() {
  const token = await mint();
  await control('stats?reset=1');
  const answers = [];
  for (let round = 0; round < 20; round += 1) {
    answers.push(...await Promise.all(Array.from({ length: 50 }, () => bearer(madeUpKey(token)))));
    check(`storm, round ${round}: a good token gets through`, (await bearer(await mint())).status === 200, 'refused');
  }
  check('storm: 1000 made-up key ids get 1000 times 401', answers.every(refused), show(answers.find((a) => !refused(a)) ?? answers[0]));
  const fetches = await jwksFetches();
  check('storm: at most two fetches of keys', fetches <= 2, fetches);
}

async function faults() {
  const modes = ALL ? ['503', 'garbage', 'empty', 'huge', 'reset', 'slow3000', 'hang', `redirect&to=http://127.0.0.1:${UPSTREAM_PORT}/trap`] : ['503', 'hang'];
  for (const mode of modes) {
    const name = mode.split('&')[0];
    await control(`fault?route=jwks&mode=${mode}`);
    await sleep(COOL_DOWN); // so that the next made-up key id makes the gateway ask
    await control('stats?reset=1');
    const answers = await Promise.all([bearer(madeUpKey(await mint())), bearer(await mint()), bearer(await mint())]);
    check(`keys ${name}: an unknown key id is a 401`, refused(answers[0]), show(answers[0]));
    check(`keys ${name}: known keys still count`, answers[1].status === 200 && answers[2].status === 200, show(answers[1]));
    const fetches = await jwksFetches();
    check(`keys ${name}: the gateway did ask`, fetches >= 1 && fetches <= 2, fetches);
    await control('fault?clear=1');
  }
  check('no redirect was followed', trapped === 0, trapped);
}

async function oddKeySet() {
  await control('weird?on=1');
  await sleep(COOL_DOWN);
  await control('rotate?mode=graceful&alg=EdDSA');
  const answer = await bearer(await mint());
  check('a key set with keys for other purposes: the usable one is found', answer.status === 200, show(answer));
  await control('weird?on=0');
}

async function hardRotation() {
  const old = await mint();
  check('before the hard rotation', (await bearer(old)).status === 200, 'refused');
  await sleep(COOL_DOWN);
  await control('rotate?mode=hard&alg=PS256');
  const answer = await bearer(await mint());
  check('hard rotation: first token of the new key', answer.status === 200, show(answer));
  check('hard rotation: the withdrawn key counts no more', refused(await bearer(old)), 'accepted');
}

async function earlyRotation() {
  await control('rotate?mode=early&alg=RS256');
  const token = await mint();
  check('a key that signs before it is published', refused(await bearer(token)), 'accepted');
  await control('publish');
  const found = await until('the published key is found', async () => (await bearer(token)).status === 200);
  check('the same key, soon after its publication', found, 'refused');
}

function nothingLeaked() {
  const forwarded = initialize.slice(initialize.indexOf('"method"')); // the id is the gateway's own
  check('only accepted requests reached a server', seen.length === accepted && seen.every((request) => request.endsWith(forwarded)), `${seen.length} requests, ${accepted} accepted`);
  const leaked = seen.filter((request) => /authorization|x-api-key|eyJ/i.test(request) || request.includes(API_KEY));
  check('no credential reached a server', leaked.length === 0, leaked[0]?.slice(0, 300));
}

upstream.listen(UPSTREAM_PORT, '127.0.0.1', async () => {
  try {
    await until('the gateway has keys', async () => (await bearer(await mint())).status === 200, 15_000);
    for (const step of [loginIsFound, audiencesAreKeptApart, credentialsComeInHeaders, gracefulRotation, hostileTokens,
      storm, faults, oddKeySet, hardRotation, earlyRotation, nothingLeaked]) await step();
  } catch (error) { failed += 1; console.error(error); }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
});
