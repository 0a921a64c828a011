// Hostile tokens, key rotations and outages of a real identity provider, walked through the gateway.
//
// idp/ holds the provider and the judge (`hostile.mjs`); this starts both and the gateway between them, on free ports.
//
// Usage: node judge/idp.mjs [--all]        (needs CONTRAFLOW_BIN; takes minutes: it waits for real cool-downs)
import { readFileSync } from 'node:fs';
import { HERE, RUN, freePort, run, serveGateway, startProgram, stopAll } from './processes.mjs';

let last = '0 passed, 1 failed';
try {
  const binary = process.env.CONTRAFLOW_BIN;
  if (!binary) throw new Error('CONTRAFLOW_BIN must name the gateway');
  const [gateway, idp, upstream] = [await freePort(), await freePort(), await freePort()];
  const issuer = `http://127.0.0.1:${idp}`;
  const env = { PORT: String(idp), ISSUER: issuer };
  await startProgram('idp', process.execPath, ['idp/server.mjs'], `${issuer}/.well-known/openid-configuration`, env);
  const config = readFileSync(`${HERE}/idp/gateway.yaml`, 'utf8')
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${gateway}`)
    .replaceAll('127.0.0.1:23000', `127.0.0.1:${idp}`)
    .replaceAll('127.0.0.1:23060', `127.0.0.1:${upstream}`);
  await serveGateway(binary, gateway, `${config}\naudit: { file: ${JSON.stringify(`${RUN}/audit.jsonl`)} }\n`);
  const args = ['idp/hostile.mjs', `http://127.0.0.1:${gateway}`, issuer, ...process.argv.slice(2)];
  const print = (line) => (/^\d+ passed, \d+ failed$/.test(line) ? (last = line) : console.log(line));
  await run(process.execPath, args, print, { seconds: 900, env: { UPSTREAM_PORT: String(upstream) } });
} catch (error) {
  console.log(`FAIL  ${error.message}`);
} finally {
  stopAll();
}
if (!last.endsWith(' 0 failed')) console.log(`logs: ${RUN.slice(HERE.length + 1)}`);
console.log(last);
process.exit(last.endsWith(' 0 failed') ? 0 : 1);
