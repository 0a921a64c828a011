// Starts servers and the gateway as child processes, waits until they serve, and ends them.
//
// What a child prints goes to a file in the run's folder; only the line that names its address is read from it.
// Nothing outlives the run: every child is ended by `stopAll`, on success, on failure and on a signal.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder tests/interop. */
export const HERE = dirname(dirname(fileURLToPath(import.meta.url)));
export const PYTHON = join(HERE, '.work/py/bin/python');
/** The Python that has the SDK of the modern era. */
export const PYTHON_MODERN = join(HERE, '.work/py2/bin/python');
/** Whether the gateway is expected to reach servers of the modern era; cells that need it say `todo` otherwise. */
export const MODERN_SERVERS = process.env.MODERN_SERVERS !== '0';
/** The header that the gateway is configured to send to every server. */
export const UPSTREAM_KEY = 'interop-upstream-key';

const PATIENCE_MS = 30_000;
const children = new Set();
/** Name → gateway. */
const gateways = new Map();
mkdirSync(join(HERE, '.work/runs'), { recursive: true });
/** Where this run's logs, configuration and audit log are. */
export const RUN = mkdtempSync(join(HERE, '.work/runs/'));

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    stopAll();
    process.exit(1);
  });
}

/**
 * Ends the gateway as an operator would, and gives its exit code; `null` when it had to be killed.
 * What it wrote is complete only after that.
 */
export function endGateway(name = 'gateway', seconds = 30) {
  const child = gateways.get(name);
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000);
    child.once('exit', (code) => {
      clearTimeout(timer);
      resolve(code);
    });
    child.kill('SIGTERM');
  });
}

/**
 * The memory of the gateway, in MiB (from /proc): what it has of its own now, and the most that was resident, with its
 * program, which comes in piece by piece as it is used and is large where it was built without optimisation.
 */
export function gatewayMemory() {
  const status = readFileSync(`/proc/${gateways.get('gateway').pid}/status`, 'utf8');
  const read = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)[1]) / 1024;
  return { now: read('RssAnon'), peak: read('VmHWM') };
}

/** The process of the gateway. */
export const gatewayId = (name = 'gateway') => gateways.get(name).pid;

/** Kills every child. */
export function stopAll() {
  for (const child of children) child.kill('SIGKILL');
}

/** Starts a server that prints `listening <url>` and gives that URL. */
export async function startServer(name, command, args) {
  const child = start(name, command, args);
  const url = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${name} did not start`)), PATIENCE_MS);
    let text = '';
    child.stdout.on('data', (data) => {
      text += data;
      const found = /^listening (\S+)$/m.exec(text);
      if (found) {
        clearTimeout(timer);
        resolve(found[1]);
      }
    });
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}: ${readFileSync(logOf(name))}`)));
  });
  return url;
}

/**
 * Starts the gateway in front of the servers.
 *
 * @param {Record<string, string>} servers name → URL
 * @param {object} [options]
 * @param {Record<string, string>} [options.keys] name → key of those who get in; without it, everybody on this machine
 * @param {string} [options.more] further lines of configuration
 * @param {string} [options.name] what its files are called, where there are several
 * @returns {Promise<(name: string) => string>} the endpoint of a server behind the gateway
 */
export async function startGateway(binary, servers, { keys, more = '', name = 'gateway' } = {}) {
  const port = await freePort();
  await serveGateway(binary, port, gatewayConfig(port, servers, keys, auditOf(name)) + more, name);
  return (server) => `http://127.0.0.1:${port}/mcp/${server}`;
}

/** Starts the gateway with the given configuration, which listens on `port`, and waits until it is ready. */
export async function serveGateway(binary, port, config, name = 'gateway') {
  const file = join(RUN, `${name}.yaml`);
  writeFileSync(file, config);
  gateways.set(name, start(name, binary, ['serve', '--config', file]));
  await ready(gateways.get(name), name, `http://127.0.0.1:${port}/readyz`);
}

/** Starts a server that may be killed at any time; it is not waited for. */
export const startKillable = (name, command, args) => start(name, command, args);

/** Starts a program and waits until `url` answers, with success or as `good` says. */
export async function startProgram(name, command, args, url, env = {}, good = undefined) {
  await ready(start(name, command, args, env), name, url, good);
}

async function ready(child, name, url, good = (response) => response.ok) {
  let code;
  child.once('exit', (status) => (code = status));
  const end = Date.now() + PATIENCE_MS;
  while (!(await fetch(url).then(good, () => false))) {
    if (code !== undefined || Date.now() > end) {
      throw new Error(`${name} does not serve (exit ${code}):\n${readFileSync(logOf(name))}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Runs a program to its end, at most `seconds`, its output line by line to `print`; gives its exit code. */
export function run(command, args, print, { seconds = 300, env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: HERE, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
    const timer = setTimeout(() => {
      print(`FAIL  ${args.join(' ')}: ended after ${seconds} s`);
      child.kill('SIGKILL');
    }, seconds * 1000);
    let rest = '';
    const take = (data) => {
      const lines = (rest + data).split('\n');
      rest = lines.pop();
      lines.forEach(print);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      children.delete(child);
      if (rest) print(rest);
      resolve(code);
    });
  });
}

/**
 * Runs a program that judges and ends with `N passed, N failed`, and adds its counts to `total`; one that ends without is a
 * failure of the name `title`.
 */
export async function runJudge(title, command, args, total, options) {
  let counted = false;
  await run(command, args, (line) => {
    const sum = /^(\d+) passed, (\d+) failed$/.exec(line);
    if (!sum) return console.log(line);
    counted = true;
    total.passed += Number(sum[1]);
    total.failed += Number(sum[2]);
  }, options);
  if (counted) return;
  total.failed += 1;
  console.log(`FAIL  ${title}: the client ended without a count`);
}

function start(name, command, args, env = {}) {
  const log = createWriteStream(logOf(name), { flags: 'a' });
  const child = spawn(command, args, { cwd: HERE, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  child.once('exit', () => children.delete(child));
  return child;
}

/** The audit log of a gateway. */
export const auditOf = (name = 'gateway') => join(RUN, name === 'gateway' ? 'audit.jsonl' : `${name}-audit.jsonl`);
/** What a child printed. */
export const logOf = (name) => join(RUN, `${name}.log`);

// Rates of requests stay unlimited by default; the caps that one principal would hit with hundreds of sessions are lifted.
function gatewayConfig(port, servers, keys, audit) {
  const lines = [`listen: 127.0.0.1:${port}`, 'servers:'];
  for (const [name, url] of Object.entries(servers)) {
    lines.push(`  ${name}:`, `    url: ${url}`, `    headers: { x-api-key: ${UPSTREAM_KEY} }`);
    lines.push('    questions: { limits: { per_call: off, pending: off, rate: off } }');
  }
  if (keys) {
    lines.push('auth:', '  api_keys:');
    for (const [name, key] of Object.entries(keys)) {
      const sha256 = createHash('sha256').update(key).digest('hex');
      lines.push(`    - { name: ${name}, sha256: ${sha256} }`);
    }
  }
  lines.push('limits:', '  per_principal: { sessions: 5000, questions: 20000 }');
  lines.push(`audit: { file: ${JSON.stringify(audit)} }`);
  return `${lines.join('\n')}\n`;
}

/** A port on 127.0.0.1 that nobody listens on now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
