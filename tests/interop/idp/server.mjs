// Headless OAuth 2.1 / OpenID Connect identity provider for gateway tests.
// Real protocol engine: npm `oidc-provider` (certified OP); everything below is glue that makes it
// scriptable: auto-login, key rotation on demand, token exchange, ID-JAG, fault injection, bad tokens.
// Loopback only. Test use only: it hands out tokens to anyone who asks.
import http from 'node:http';
import crypto from 'node:crypto';
import { Provider, errors, interactionPolicy } from 'oidc-provider';
import * as jose from 'jose';

// oidc-provider 9 targets Node 22; these two fill what Node 20 lacks.
URL.parse ??= (u, b) => { try { return new URL(u, b); } catch { return null; } };
Promise.withResolvers ??= () => { let resolve, reject; const promise = new Promise((a, b) => { resolve = a; reject = b; }); return { promise, resolve, reject }; };
const env = process.env;
const HOST = env.HOST ?? '127.0.0.1';
const PORT = Number(env.PORT ?? 23000);
const ISSUER = env.ISSUER ?? `http://${HOST}:${PORT}`;
const BASE = new URL(ISSUER).pathname.replace(/\/$/, ''); // '' or '/tenant1'
const PROFILE = env.PROFILE ?? 'standard'; // standard | entra | keycloak | google | okta
const AT_TTL = Number(env.AT_TTL ?? 300);
const DEFAULT_USER = env.DEFAULT_USER ?? 'alice';
const INTERACTIVE = env.INTERACTIVE === '1'; // 1: browser login page with cookies; 0: one-hop auto-login
const TRUSTED = (env.TRUSTED_ISSUERS ?? '').split(',').filter(Boolean); // issuers whose ID-JAG we accept
const GATEWAY_REDIRECTS = (env.GATEWAY_REDIRECT_URIS ?? 'http://127.0.0.1:23050/oauth/callback').split(',');
const SCOPES = (env.SCOPES ?? 'mcp mcp:tools mcp:read mcp:write mcp:admin').split(' ');
const ALG = env.ALG ?? 'RS256';

if (!['127.0.0.1', '::1', 'localhost'].includes(HOST)) throw new Error('loopback only');

const TX = 'urn:ietf:params:oauth:grant-type:token-exchange';
const JB = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const TT = (n) => `urn:ietf:params:oauth:token-type:${n}`;

const profiles = {
  standard: { dcr: true, cimd: true, resource: 'honour', opaque: false, pkceAdvertised: true, discovery: 'both' },
  // Modelled on reports about real products; see README. They are approximations.
  entra: { dcr: false, cimd: false, resource: 'reject', opaque: false, pkceAdvertised: false, discovery: 'oidc-append', aud: 'api://gateway' },
  keycloak: { dcr: true, cimd: false, resource: 'ignore', opaque: false, pkceAdvertised: true, discovery: 'oidc-append', aud: 'account' },
  google: { dcr: false, cimd: false, resource: 'ignore', opaque: true, pkceAdvertised: true, discovery: 'oidc-append', aud: undefined },
  okta: { dcr: 'needs-token', cimd: false, resource: 'ignore', opaque: false, pkceAdvertised: true, discovery: 'both', aud: 'api://default' },
};
const P = profiles[PROFILE] ?? (() => { throw new Error(`unknown PROFILE ${PROFILE}`); })();

const users = new Map([
  ['alice', { name: 'Alice', email: 'alice@example.test', groups: ['engineering'], tenant: 'acme' }],
  ['bob', { name: 'Bob', email: 'bob@example.test', groups: ['marketing'], tenant: 'acme' }],
  ['carol', { name: 'Carol', email: 'carol@example.test', groups: ['engineering', 'platform-admins'], tenant: 'acme' }],
  ['dave', { name: 'Dave', email: 'dave@other.test', groups: ['engineering'], tenant: 'globex' }],
]);

// ---------- storage shared by every Provider instance (so keys can be swapped, state kept) ----------
const store = new Map();
class MapAdapter {
  constructor(name) { this.name = name; }
  k(id) { return `${this.name}:${id}`; }
  async upsert(id, payload, expiresIn) {
    store.set(this.k(id), { payload, exp: expiresIn ? Date.now() + expiresIn * 1000 : Infinity });
    if (payload.uid) store.set(`uid:${payload.uid}`, { payload: id, exp: Infinity });
    if (payload.grantId) {
      const g = store.get(`grant:${payload.grantId}`)?.payload ?? [];
      store.set(`grant:${payload.grantId}`, { payload: [...g, this.k(id)], exp: Infinity });
    }
  }
  async find(id) {
    const e = store.get(this.k(id));
    if (!e) return undefined;
    if (e.exp < Date.now()) { store.delete(this.k(id)); return undefined; }
    return e.payload;
  }
  async findByUid(uid) { const e = store.get(`uid:${uid}`); return e && this.find(e.payload); }
  async findByUserCode() { return undefined; }
  async destroy(id) { store.delete(this.k(id)); }
  async revokeByGrantId(g) { for (const k of store.get(`grant:${g}`)?.payload ?? []) store.delete(k); store.delete(`grant:${g}`); }
  async consume(id) { const e = store.get(this.k(id)); if (e) e.payload.consumed = Math.floor(Date.now() / 1000); }
}

// ---------- keys ----------
let keys = []; // [{jwk (private), alg, published}] newest first
async function newKey(alg = ALG, published = true) {
  const opts = { extractable: true, ...(alg.startsWith('RS') || alg.startsWith('PS') ? { modulusLength: 2048 } : {}) };
  const { privateKey } = await jose.generateKeyPair(alg === 'EdDSA' ? 'Ed25519' : alg, opts);
  const jwk = await jose.exportJWK(privateKey);
  jwk.kid = `${alg.toLowerCase()}-${crypto.randomBytes(6).toString('hex')}`;
  jwk.use = 'sig'; jwk.alg = alg === 'EdDSA' ? 'Ed25519' : alg;
  return { jwk, alg: jwk.alg, published };
}
const pub = (j) => { const { d, p, q, dp, dq, qi, k, ...rest } = j; return rest; };

// ---------- provider ----------
const revokedJti = new Set();
const seenAssertionJti = new Map();
const cimdDocs = new Map([['https://client.mcp-test.invalid/oauth/client.json', {
  client_id: 'https://client.mcp-test.invalid/oauth/client.json', client_name: 'MCP CIMD test client',
  redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback'], application_type: 'native',
  grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none',
}]]);
const cookieKeys = [crypto.randomBytes(24).toString('hex')];
const pkjwtPair = await jose.generateKeyPair('ES256', { extractable: true });
const pkjwtPriv = { ...(await jose.exportJWK(pkjwtPair.privateKey)), kid: 'pkjwt-1', alg: 'ES256', use: 'sig' };

const conf = (client_id, secret, grants, extra = {}) => ({
  client_id, client_secret: secret, grant_types: grants, redirect_uris: [], response_types: [],
  token_endpoint_auth_method: 'client_secret_basic', ...extra,
});
const clients = [
  conf('gateway', 'gateway-secret', ['authorization_code', 'refresh_token', 'client_credentials', TX, JB],
    { redirect_uris: GATEWAY_REDIRECTS, response_types: ['code'] }),
  conf('ci-bot', 'ci-bot-secret', ['client_credentials']),
  conf('rs', 'rs-secret', ['client_credentials']), // resource server that introspects
  { client_id: 'pkjwt', grant_types: ['client_credentials', TX, JB], redirect_uris: [], response_types: [],
    token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'ES256', jwks: { keys: [pub(pkjwtPriv)] } },
  { client_id: 'public-cli', application_type: 'native', token_endpoint_auth_method: 'none',
    redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback'],
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
];

const policy = interactionPolicy.base();
policy.get('consent').checks.clear();

function buildProvider() {
  const provider = new Provider(ISSUER, {
    adapter: MapAdapter,
    clients,
    jwks: { keys: keys.map((k) => k.jwk) },
    cookies: { keys: cookieKeys, short: { path: '/' }, long: { path: '/' } },
    scopes: ['openid', 'offline_access', ...SCOPES],
    claims: { openid: ['sub'], email: ['email'], profile: ['name', 'groups', 'tenant'] },
    clientDefaults: { id_token_signed_response_alg: keys[0].alg, grant_types: ['authorization_code', 'refresh_token'] },
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'Ed25519'],
      clientAuthSigningAlgValues: ['RS256', 'PS256', 'ES256', 'Ed25519'] },
    rotateRefreshToken: true,
    issueRefreshToken: async (_c, client) => client.grantTypeAllowed('refresh_token'),
    pkce: { required: () => true },
    ttl: { AccessToken: () => AT_TTL, ClientCredentials: () => AT_TTL, IdToken: () => AT_TTL, RefreshToken: () => 86400,
      Session: () => 86400, Grant: () => 86400, Interaction: () => 600, AuthorizationCode: () => 60 },
    interactions: { policy, url: (_c, i) => `${BASE}/interaction/${i.uid}` },
    async findAccount(_c, id) {
      const u = users.get(id) ?? { name: id, email: `${id}@example.test`, groups: [], tenant: 'acme' };
      return { accountId: id, async claims() { return { sub: id, ...u }; } };
    },
    async extraTokenClaims(_c, token) {
      const u = token.accountId && (users.get(token.accountId) ?? {});
      return u ? { email: u.email, groups: u.groups, tenant: u.tenant } : undefined;
    },
    async loadExistingGrant(ctx) { // consent is automatic
      const { client, session, params, resourceServers } = ctx.oidc;
      const grant = new ctx.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope(`openid offline_access ${params.scope ?? ''}`.trim());
      for (const [id, rs] of Object.entries(resourceServers ?? {})) grant.addResourceScope(id, rs.scope);
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      registration: { enabled: P.dcr !== false, initialAccessToken: P.dcr === 'needs-token' ? 'dcr-initial-token' : false },
      registrationManagement: { enabled: P.dcr !== false },
      dPoP: { enabled: true },
      userinfo: { enabled: true },
      clientIdMetadataDocument: P.cimd
        ? { enabled: true, ack: 'draft-02', allowFetch: async () => true, allowClient: async () => true } : { enabled: false },
      resourceIndicators: {
        enabled: true,
        async defaultResource() { return P.resource === 'honour' ? undefined : `${ISSUER}/resources`; },
        async useGrantedResource() { return true; },
        async getResourceServerInfo(_c, resource) {
          if (!/^(https?|api):\/\//.test(resource)) throw new errors.InvalidTarget('unknown resource');
          const opaque = P.opaque || /opaque/.test(resource);
          const audience = resource === `${ISSUER}/resources` && P.aud ? P.aud : resource; // fixed audience of IdPs without RFC 8707
          return { scope: SCOPES.join(' '), audience, accessTokenTTL: AT_TTL,
            accessTokenFormat: opaque ? 'opaque' : 'jwt', ...(opaque ? {} : { jwt: { sign: { alg: keys[0].alg, kid: keys[0].jwk.kid } } }) };
        },
      },
    },
    async fetch(url, options) { // CIMD documents for *.invalid names come from memory, nothing leaves the machine
      const u = String(url);
      if (cimdDocs.has(u)) return new Response(JSON.stringify(cimdDocs.get(u)), { status: 200, headers: { 'content-type': 'application/json', 'cache-control': 'max-age=60' } });
      if (/^https?:\/\/(127\.0\.0\.1|localhost|\[::1\])[:/]/.test(u)) { const { dispatcher, ...o } = options; return fetch(u, o); }
      return new Response('not found', { status: 404 });
    },
  });
  provider.registerGrantType(TX, tokenExchange, ['audience', 'resource', 'scope', 'requested_token_type',
    'subject_token', 'subject_token_type', 'actor_token', 'actor_token_type'], ['audience', 'resource']);
  provider.registerGrantType(JB, jwtBearer, ['assertion', 'scope', 'resource'], []);
  provider.on('server_error', (_c, e) => console.error('server_error', e));
  return provider;
}

// ---------- token exchange, ID-JAG, jwt-bearer ----------
const now = () => Math.floor(Date.now() / 1000);
const jti = () => crypto.randomUUID();
async function sign(payload, typ = 'at+jwt', key = keys[0]) {
  const k = await jose.importJWK(key.jwk, key.alg);
  return new jose.SignJWT(payload).setProtectedHeader({ alg: key.alg, kid: key.jwk.kid, typ }).sign(k);
}
const looksJwt = (t) => typeof t === 'string' && t.split('.').length === 3;
async function verifyOwn(token, opts = {}) {
  return jose.jwtVerify(token, jose.createLocalJWKSet({ keys: keys.map((k) => pub(k.jwk)) }), { issuer: ISSUER, ...opts });
}
const remoteSets = new Map();
async function verifyForeign(token, iss, opts) {
  if (!TRUSTED.includes(iss)) throw new Error(`issuer ${iss} is not trusted`);
  if (!remoteSets.has(iss)) {
    const m = await (await fetch(`${iss}/.well-known/openid-configuration`)).json();
    remoteSets.set(iss, jose.createRemoteJWKSet(new URL(m.jwks_uri), { cooldownDuration: 1000 }));
  }
  return jose.jwtVerify(token, remoteSets.get(iss), { issuer: iss, ...opts });
}
async function verifySubject(ctx, token, type) {
  if (!looksJwt(token)) {
    const at = await ctx.oidc.provider.AccessToken.find(token);
    if (!at?.isValid) throw new errors.InvalidGrant('subject token is not valid');
    return { sub: at.accountId, client_id: at.clientId, scope: at.scope };
  }
  const iss = jose.decodeJwt(token).iss;
  const opts = type === TT('id_token') ? { audience: ctx.oidc.client.clientId } : {};
  try {
    const { payload } = iss === ISSUER ? await verifyOwn(token, opts) : await verifyForeign(token, iss, opts);
    if (revokedJti.has(payload.jti)) throw new Error('revoked');
    return payload;
  } catch (e) { throw new errors.InvalidGrant(`subject token rejected: ${e.message}`); }
}
async function tokenExchange(ctx) {
  const { params, client } = ctx.oidc;
  if (!params.subject_token || !params.subject_token_type) throw new errors.InvalidRequest('subject_token and subject_token_type are required');
  const want = params.requested_token_type ?? TT('access_token');
  const subject = await verifySubject(ctx, params.subject_token, params.subject_token_type);
  if (subject.sub === 'mallory') throw new errors.AccessDenied('policy: this user may not use this resource');
  let act;
  if (params.actor_token) {
    const a = await verifySubject(ctx, params.actor_token, params.actor_token_type);
    act = { sub: a.sub, ...(a.act ? { act: a.act } : {}) };
  }
  const arr = (v) => (v === undefined ? [] : [].concat(v));
  const resources = arr(params.resource); const audiences = arr(params.audience);
  const scope = (params.scope ?? '').split(' ').filter((s) => SCOPES.includes(s)).join(' ') || undefined;
  const u = users.get(subject.sub) ?? {};
  if (want === TT('id-jag')) {
    if (!audiences[0] || !resources[0]) throw new errors.InvalidRequest('id-jag needs audience and resource');
    const token = await sign({ iss: ISSUER, sub: subject.sub, email: u.email, aud: audiences[0], resource: resources[0],
      client_id: client.clientId, jti: jti(), iat: now(), exp: now() + 300, ...(scope ? { scope } : {}) }, 'oauth-id-jag+jwt');
    ctx.body = { issued_token_type: want, access_token: token, token_type: 'N_A', expires_in: 300, ...(scope ? { scope } : {}) };
    return;
  }
  if (![TT('access_token'), TT('jwt')].includes(want)) throw new errors.InvalidRequest('unsupported requested_token_type');
  const aud = [...resources, ...audiences];
  if (!aud.length) throw new errors.InvalidTarget('resource or audience is required');
  const token = await sign({ iss: ISSUER, sub: subject.sub, aud: aud.length === 1 ? aud[0] : aud, client_id: client.clientId,
    ...(scope ? { scope } : {}), jti: jti(), iat: now(), exp: now() + AT_TTL, email: u.email, groups: u.groups, ...(act ? { act } : {}) });
  ctx.body = { access_token: token, issued_token_type: TT('access_token'), token_type: 'Bearer', expires_in: AT_TTL, ...(scope ? { scope } : {}) };
}
async function jwtBearer(ctx) {
  const { params, client } = ctx.oidc;
  if (!params.assertion) throw new errors.InvalidRequest('assertion is required');
  let payload; let protectedHeader;
  try {
    const iss = jose.decodeJwt(params.assertion).iss;
    ({ payload, protectedHeader } = iss === ISSUER ? await verifyOwn(params.assertion, { audience: ISSUER })
      : await verifyForeign(params.assertion, iss, { audience: ISSUER }));
    if (protectedHeader.typ !== 'oauth-id-jag+jwt') throw new Error('typ is not oauth-id-jag+jwt');
    if (payload.client_id !== client.clientId) throw new Error('client_id claim is not the authenticated client');
    if (!payload.jti || seenAssertionJti.has(payload.jti)) throw new Error('assertion replayed');
    seenAssertionJti.set(payload.jti, payload.exp);
  } catch (e) { throw new errors.InvalidGrant(`assertion rejected: ${e.message}`); }
  const scope = (params.scope ?? payload.scope ?? '').split(' ').filter((s) => SCOPES.includes(s)).join(' ') || undefined;
  const token = await sign({ iss: ISSUER, sub: payload.sub, aud: payload.resource, client_id: client.clientId,
    ...(scope ? { scope } : {}), jti: jti(), iat: now(), exp: now() + AT_TTL });
  ctx.body = { access_token: token, token_type: 'Bearer', expires_in: AT_TTL, ...(scope ? { scope } : {}) };
}

// ---------- hostile tokens for negative tests ----------
const b64 = (v) => Buffer.from(typeof v === 'string' ? v : JSON.stringify(v)).toString('base64url');
async function mint({ sub = DEFAULT_USER, aud = `${ISSUER}/resources`, scope, ttl = AT_TTL, attack, claims = {}, header = {} }) {
  const u = users.get(sub) ?? {};
  let p = { iss: ISSUER, sub, aud, client_id: 'dev', ...(scope ? { scope } : {}), jti: jti(), iat: now(), exp: now() + Number(ttl),
    email: u.email, groups: u.groups, ...claims };
  const k = keys[0]; let h = { alg: k.alg, kid: k.jwk.kid, typ: 'at+jwt', ...header };
  const raw = async (hdr, payload, key) => {
    const input = `${b64(hdr)}.${typeof payload === 'string' ? b64(payload) : b64(payload)}`;
    const s = await new jose.FlattenedSign(Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload)))
      .setProtectedHeader(hdr).sign(await jose.importJWK((key ?? k).jwk, (key ?? k).alg), { crit: { b64: true, 'x-unknown': true } });
    return `${s.protected}.${s.payload}.${s.signature}`;
  };
  switch (attack) {
    case undefined: case '': return raw(h, p);
    case 'alg-none': return `${b64({ alg: 'none', typ: 'at+jwt' })}.${b64(p)}.`;
    case 'alg-none-case': return `${b64({ alg: 'nOnE', typ: 'at+jwt' })}.${b64(p)}.`;
    case 'hs256-pubkey': { // RS/HS confusion: HMAC with the published public key
      const pem = await jose.exportSPKI(await jose.importJWK(pub(k.jwk), k.alg, { extractable: true }));
      const hdr = b64({ alg: 'HS256', kid: k.jwk.kid, typ: 'at+jwt' });
      return `${hdr}.${b64(p)}.${crypto.createHmac('sha256', pem).update(`${hdr}.${b64(p)}`).digest('base64url')}`;
    }
    case 'expired': return raw(h, { ...p, iat: now() - 7200, exp: now() - 3600 });
    case 'just-expired': return raw(h, { ...p, exp: now() - 20 }); // inside a 30-60 s leeway, outside a 0 s one
    case 'nbf-future': return raw(h, { ...p, nbf: now() + 3600 });
    case 'iat-future': return raw(h, { ...p, iat: now() + 86400 });
    case 'wrong-aud': return raw(h, { ...p, aud: 'https://other.example.test/mcp' });
    case 'no-aud': { const { aud: _, ...q } = p; return raw(h, q); }
    case 'aud-array': return raw(h, { ...p, aud: ['https://other.example.test/mcp', aud] });
    case 'aud-prefix': return raw(h, { ...p, aud: `${aud}x` });
    case 'no-exp': { const { exp: _, ...q } = p; return raw(h, q); }
    case 'exp-string': return raw(h, { ...p, exp: String(p.exp) });
    case 'no-sub': { const { sub: _, ...q } = p; return raw(h, q); }
    case 'wrong-iss': return raw(h, { ...p, iss: 'https://evil.example.test' });
    case 'iss-slash': return raw(h, { ...p, iss: `${ISSUER}/` });
    case 'no-kid': { const { kid: _, ...q } = h; return raw(q, p); }
    case 'unknown-kid': return raw({ ...h, kid: crypto.randomBytes(8).toString('hex') }, p);
    case 'kid-path': return raw({ ...h, kid: '../../../../dev/null' }, p);
    case 'kid-sql': return raw({ ...h, kid: "x' UNION SELECT 'k" }, p);
    case 'foreign-key': return raw(h, p, await newKey(k.alg)); // right kid, signed by another key
    case 'jku': return raw({ ...h, alg: evilKey.alg, kid: 'evil', jku: `${ISSUER}/dev/evil-jwks` }, p, evilKey);
    case 'x5u': return raw({ ...h, alg: evilKey.alg, kid: 'evil', x5u: `${ISSUER}/dev/evil-x5u` }, p, evilKey);
    case 'embedded-jwk': return raw({ ...h, alg: evilKey.alg, kid: 'evil', jwk: pub(evilKey.jwk) }, p, evilKey);
    case 'crit': return raw({ ...h, crit: ['x-unknown'], 'x-unknown': 1 }, p);
    case 'id-token': return raw({ ...h, typ: 'JWT' }, { ...p, nonce: 'n', at_hash: 'x' });
    case 'id-jag-as-token': return raw({ ...h, typ: 'oauth-id-jag+jwt' }, p);
    case 'logout-token': return raw({ ...h, typ: 'logout+jwt' }, { ...p, events: { 'http://schemas.openid.net/event/backchannel-logout': {} } });
    case 'dup-claims': return raw(h, JSON.stringify(p).replace(/}$/, `,"sub":"carol","groups":["platform-admins"]}`));
    case 'tampered': { const t = (await raw(h, p)).split('.'); return `${t[0]}.${b64({ ...p, sub: 'carol' })}.${t[2]}`; }
    case 'bad-sig': { const t = (await raw(h, p)).split('.'); return `${t[0]}.${t[1]}.${Buffer.alloc(Buffer.from(t[2], 'base64url').length).toString('base64url')}`; }
    case 'huge': return raw(h, { ...p, pad: 'A'.repeat(200_000) });
    case 'deep': return raw(h, JSON.stringify(p).replace(/}$/, `,"deep":${'['.repeat(20000)}${']'.repeat(20000)}}`));
    case 'ctl-sub': return raw(h, { ...p, sub: 'alice\r\nX-Admin: 1' });
    case 'jwe': return new jose.CompactEncrypt(Buffer.from(JSON.stringify(p))).setProtectedHeader({ alg: 'dir', enc: 'A128GCM' }).encrypt(crypto.randomBytes(16));
    default: throw new Error(`unknown attack ${attack}`);
  }
}
const ATTACKS = ['alg-none', 'alg-none-case', 'hs256-pubkey', 'expired', 'just-expired', 'nbf-future', 'iat-future', 'wrong-aud', 'no-aud', 'aud-array',
  'aud-prefix', 'no-exp', 'exp-string', 'no-sub', 'wrong-iss', 'iss-slash', 'no-kid', 'unknown-kid', 'kid-path', 'kid-sql', 'foreign-key', 'jku', 'x5u',
  'embedded-jwk', 'crit', 'id-token', 'id-jag-as-token', 'logout-token', 'dup-claims', 'tampered', 'bad-sig', 'huge', 'deep', 'ctl-sub', 'jwe'];
const evilKey = await newKey('RS256'); evilKey.jwk.kid = 'evil';

// ---------- faults, statistics ----------
const faults = new Map(); // route -> {mode, count}
const stats = {}; const recent = [];
const redact = (q) => q.replace(/((?:code|token|secret|assertion|verifier)[^=&]*=)[^&]*/gi, '$1***');
function note(route, req, extra = '') {
  stats[route] = (stats[route] ?? 0) + 1;
  recent.push(`${new Date().toISOString()} ${req.method} ${redact(req.url)}${extra ? ` ${redact(extra)}` : ''}`);
  if (recent.length > 500) recent.shift();
}
const send = (res, status, body, headers = {}) => {
  const s = typeof body === 'string' ? body : JSON.stringify(body);
  res.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json', 'cache-control': 'no-store', 'access-control-allow-origin': '*', ...headers });
  res.end(s);
};
const readBody = async (req) => { const c = []; let n = 0; for await (const x of req) { n += x.length; if (n > 1e6) throw new Error('body too large'); c.push(x); } return Buffer.concat(c).toString(); };
async function fault(route, res) {
  const f = faults.get(route); if (!f) return false;
  if (f.count !== undefined && f.count-- <= 0) { faults.delete(route); return false; }
  if (f.mode === 'garbage') { send(res, 200, '<html>not json</html>', { 'content-type': 'text/html' }); return true; }
  if (f.mode === 'empty') { send(res, 200, { keys: [] }); return true; }
  if (f.mode === 'huge') { send(res, 200, { keys: [], pad: 'A'.repeat(20_000_000) }); return true; }
  if (f.mode === 'reset') { res.destroy(); return true; }
  if (f.mode === 'hang') return true; // never answers
  if (f.mode === 'redirect') { send(res, 302, '', { location: f.to ?? 'http://127.0.0.1:9/' }); return true; }
  if (f.mode?.startsWith('slow')) { await new Promise((r) => setTimeout(r, Number(f.mode.slice(4) || 3000))); return false; }
  send(res, Number(f.mode) || 503, { error: 'injected_fault' }); return true;
}

// ---------- http front ----------
keys = [await newKey()];
let weird = env.JWKS_WEIRD === '1';
let provider = buildProvider();
let callback = provider.callback();
const rebuild = () => { provider = buildProvider(); callback = provider.callback(); };
const handle = (req, res) => { if (BASE) req.originalUrl = BASE + req.url; return callback(req, res); }; // issuer with a path

const routeOf = (p) => ({ '/jwks': 'jwks', '/token': 'token', '/auth': 'auth', '/token/introspection': 'introspection', '/token/revocation': 'revocation', '/reg': 'registration', '/me': 'userinfo' }[p]
  ?? (p.includes('/.well-known/') ? 'discovery' : p.startsWith('/interaction') ? 'interaction' : p.startsWith('/dev/') ? 'dev' : 'other'));

function metadata(doc) { // profile-dependent edits of the discovery document
  if (!P.pkceAdvertised) delete doc.code_challenge_methods_supported;
  if (P.dcr === false) delete doc.registration_endpoint;
  doc.grant_types_supported = [...new Set([...(doc.grant_types_supported ?? []), TX, JB])];
  doc.authorization_grant_profiles_supported = ['urn:ietf:params:oauth:grant-profile:id-jag'];
  return doc;
}
async function capture(req, url) { // run the provider for a URL and get its JSON answer
  return new Promise((resolve) => {
    const chunks = []; const res = new http.ServerResponse(req);
    res.write = (c) => { chunks.push(Buffer.from(c)); return true; };
    res.end = (c) => { if (c) chunks.push(Buffer.from(c)); resolve({ status: res.statusCode, body: Buffer.concat(chunks).toString() }); return res; };
    const r = Object.create(req); r.url = url; r.method = 'GET'; handle(r, res);
  });
}

async function dev(req, res, url) {
  const q = Object.fromEntries(url.searchParams); const name = url.pathname.slice('/dev/'.length);
  const body = req.method === 'POST' ? await readBody(req) : '';
  const json = body.startsWith('{') ? JSON.parse(body) : {};
  switch (name) {
    case 'token': return send(res, 200, await mint({ ...q, claims: q.claims ? JSON.parse(q.claims) : {} }), {});
    case 'mint': return send(res, 200, { token: await mint(json) });
    case 'attacks': return send(res, 200, ATTACKS);
    case 'rotate': { // mode=graceful (old key still published) | hard (old keys gone) | early (new key signs, not yet published)
      const mode = q.mode ?? 'graceful'; const k = await newKey(q.alg ?? ALG, mode !== 'early');
      keys = mode === 'hard' ? [k] : [k, ...keys]; rebuild();
      return send(res, 200, { mode, kid: k.jwk.kid, keys: keys.map((x) => ({ kid: x.jwk.kid, published: x.published })) });
    }
    case 'publish': keys.forEach((k) => { k.published = true; }); return send(res, 200, { ok: true });
    case 'retire': keys = keys.slice(0, 1); rebuild(); return send(res, 200, { keys: keys.map((k) => k.jwk.kid) });
    case 'weird': weird = q.on !== '0'; return send(res, 200, { weird });
    case 'fault': if (q.clear) faults.clear(); else faults.set(q.route, { mode: q.mode, to: q.to, ...(q.count ? { count: Number(q.count) } : {}) });
      return send(res, 200, Object.fromEntries(faults));
    case 'stats': if (q.reset) for (const k of Object.keys(stats)) delete stats[k]; return send(res, 200, stats);
    case 'log': return send(res, 200, recent.join('\n') + '\n');
    case 'cimd': cimdDocs.set(json.client_id, json); return send(res, 200, { ok: true });
    case 'user': users.set(json.sub, { groups: [], ...json }); return send(res, 200, { ok: true });
    case 'revoke': revokedJti.add(q.jti); return send(res, 200, { ok: true });
    case 'pkjwt.jwk': return send(res, 200, pkjwtPriv);
    case 'evil-jwks': return send(res, 200, { keys: [pub(evilKey.jwk)] });
    default: return send(res, 404, { error: 'not_found' });
  }
}

async function autoAuthorize(req, res, url) { // follow our own redirects until the client's redirect_uri: no cookies needed
  const user = url.searchParams.get('login_hint') ?? req.headers['x-test-user'] ?? DEFAULT_USER;
  const jar = new Map(); let loc = url.pathname + url.search; let r;
  for (let i = 0; i < 8; i++) {
    r = await fetch(`http://${HOST}:${PORT}${BASE}${loc}`, { redirect: 'manual', headers: { 'x-idp-internal': secret, 'x-idp-user': user, accept: 'text/html',
      cookie: [...jar].map(([k, v]) => `${k}=${v}`).join('; ') } });
    for (const c of r.headers.getSetCookie()) { const [kv] = c.split(';'); const ix = kv.indexOf('='); const v = kv.slice(ix + 1); if (v) jar.set(kv.slice(0, ix), v); else jar.delete(kv.slice(0, ix)); }
    const l = r.headers.get('location'); if (!l) break;
    const abs = new URL(l, ISSUER);
    if (abs.origin !== new URL(ISSUER).origin || !(abs.pathname.startsWith(`${BASE}/auth`) || abs.pathname.startsWith(`${BASE}/interaction`))) {
      return send(res, 302, '', { location: l });
    }
    loc = abs.pathname.slice(BASE.length) + abs.search;
  }
  send(res, r.status, await r.text(), { 'content-type': r.headers.get('content-type') ?? 'text/html' });
}
const secret = crypto.randomBytes(16).toString('hex');

async function interaction(req, res, url) {
  const uid = url.pathname.split('/')[2]; const internal = req.headers['x-idp-internal'] === secret;
  const user = internal ? req.headers['x-idp-user'] : url.searchParams.get('user');
  if (!user) {
    const links = [...users.keys(), 'deny'].map((u) => `<li><a href="${BASE}/interaction/${encodeURIComponent(uid)}?user=${u}">${u}</a></li>`).join('');
    return send(res, 200, `<!doctype html><title>Sign in</title><h1>Sign in (test IdP)</h1><ul>${links}</ul>`, { 'content-type': 'text/html' });
  }
  const result = user === 'deny' ? { error: 'access_denied', error_description: 'the user declined' } : { login: { accountId: user, remember: !internal } };
  return provider.interactionFinished(req, res, result, { mergeWithLastSubmission: false });
}

async function structuredTokenEndpoint(req, res, kind) { // RFC 7662 / 7009 for JWT access tokens (the library only does opaque ones)
  const raw = await readBody(req); const form = new URLSearchParams(raw);
  const token = form.get('token') ?? '';
  if (!looksJwt(token)) { req.body = Object.fromEntries(form); return handle(req, res); }
  const basic = /^Basic (.+)$/.exec(req.headers.authorization ?? '')?.[1];
  const [id, sec] = basic ? Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent) : [form.get('client_id'), form.get('client_secret')];
  const c = clients.find((x) => x.client_id === id && x.client_secret && x.client_secret === sec);
  if (!c) return send(res, 401, { error: 'invalid_client' }, { 'www-authenticate': 'Basic realm="idp"' });
  let payload;
  try { ({ payload } = await verifyOwn(token)); } catch { payload = undefined; }
  if (kind === 'revocation') { if (payload) revokedJti.add(payload.jti); return send(res, 200, ''); }
  if (!payload || revokedJti.has(payload.jti)) return send(res, 200, { active: false });
  return send(res, 200, { active: true, token_type: 'Bearer', username: payload.sub, ...payload });
}

const server = http.createServer({ maxHeaderSize: 512 * 1024 }, async (req, res) => {
  try {
    const url = new URL(req.url, ISSUER);
    // RFC 8414 path insertion (/.well-known/X/tenant1) and OIDC path appending (/tenant1/.well-known/X)
    const wk = /^\/\.well-known\/(oauth-authorization-server|openid-configuration)(\/.*)?$/.exec(url.pathname);
    const ap = BASE && url.pathname.startsWith(`${BASE}/.well-known/`) ? /\/(oauth-authorization-server|openid-configuration)$/.exec(url.pathname) : null;
    if (wk || ap) {
      note('discovery', req);
      if (await fault('discovery', res)) return;
      const suffix = wk ? (wk[2] ?? '') : ''; const which = (wk ?? ap)[1];
      const ok = ap ? which === 'openid-configuration' || P.discovery === 'both'
        : suffix === BASE && (P.discovery === 'both' || (BASE === '' && which === 'openid-configuration'));
      if (!ok) return send(res, 404, { error: 'not_found' });
      const r = await capture(req, `/.well-known/${which}`);
      return send(res, r.status, metadata(JSON.parse(r.body)));
    }
    if (BASE && !url.pathname.startsWith(`${BASE}/`)) { note('other', req); return send(res, 404, { error: 'not_found' }); }
    const path = url.pathname.slice(BASE.length); const route = routeOf(path);
    url.pathname = path; req.url = path + url.search;
    if (!req.headers['x-idp-internal']) note(route, req);
    if (route === 'dev') return await dev(req, res, url);
    if (await fault(route, res)) return;
    if (route === 'jwks') {
      const out = keys.filter((k) => k.published).map((k) => pub(k.jwk));
      if (weird) {
        out.unshift(pub((await newKey('ES512')).jwk), { kty: 'oct', k: 'c2VjcmV0', kid: 'sym', use: 'sig', alg: 'HS256' }, { kty: 'XYZ', kid: 'future', use: 'sig' },
          { ...pub((await newKey('RS256')).jwk), use: 'enc', alg: 'RSA-OAEP-256', kid: 'enc' }, { kty: 'OKP', crv: 'X25519', x: 'AAAA', kid: 'x25519' });
        const { kid, ...nokid } = pub((await newKey('ES256')).jwk); out.push(nokid);
      }
      return send(res, 200, { keys: out }, { 'cache-control': `public, max-age=${env.JWKS_MAX_AGE ?? 300}` });
    }
    if (route === 'interaction') return await interaction(req, res, url);
    if (route === 'auth' && path === '/auth') {
      if (P.resource === 'reject' && url.searchParams.has('resource')) {
        return send(res, 400, { error: 'invalid_target', error_description: 'AADSTS9010010: The resource parameter provided in the request does not match with the requested scopes.' });
      }
      if (P.resource === 'ignore' && url.searchParams.has('resource')) { url.searchParams.delete('resource'); req.url = path + url.search; }
      if (!INTERACTIVE && req.method === 'GET' && req.headers['x-idp-internal'] !== secret) return await autoAuthorize(req, res, url);
    }
    if (route === 'registration' && req.method === 'POST' && env.DCR_IGNORE_SCOPE === '1') { // do not freeze the scope a client names at registration
      const m = JSON.parse(await readBody(req)); delete m.scope; req.body = m;
      return handle(req, res);
    }
    if (route === 'token' && req.method === 'POST') {
      const raw = await readBody(req); const form = new URLSearchParams(raw); note('token_detail', req, raw);
      if (P.resource === 'reject' && form.has('resource')) return send(res, 400, { error: 'invalid_target', error_description: 'AADSTS9010010: resource parameter rejected' });
      if (P.resource === 'ignore') form.delete('resource');
      req.body = {}; for (const k of new Set(form.keys())) { const v = form.getAll(k); req.body[k] = v.length > 1 ? v : v[0]; }
      return handle(req, res);
    }
    if ((route === 'introspection' || route === 'revocation') && req.method === 'POST') return await structuredTokenEndpoint(req, res, route);
    return handle(req, res);
  } catch (e) {
    console.error(e);
    if (!res.headersSent) send(res, 500, { error: 'server_error', error_description: String(e.message ?? e) });
  }
});
server.listen(PORT, HOST, () => {
  console.log(`idp ${ISSUER} profile=${PROFILE} pid=${process.pid}`);
  console.log(`discovery: ${ISSUER}/.well-known/openid-configuration`);
  console.log(`token:     curl -s '${ISSUER}/dev/token?sub=alice&aud=http://127.0.0.1:23050/mcp/github&scope=mcp:tools'`);
});
for (const s of ['SIGINT', 'SIGTERM']) process.on(s, () => { server.close(); server.closeAllConnections(); process.exit(0); });
