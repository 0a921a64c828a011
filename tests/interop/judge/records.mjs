// What must hold of everything that a gateway wrote while the clients were there.
import { readFileSync } from 'node:fs';
import { UPSTREAM_KEY, auditOf, endGateway, logOf, run } from './processes.mjs';

/** What the scenarios of every client answer and ask; it belongs into no record. */
const ANSWERS = ['Zoë', 'pay-7?a=1'];

/**
 * Ends the gateway as an operator would, verifies its audit log, and looks for secrets in its records.
 *
 * @param {(name: string, good: boolean) => void} check counts and prints a check
 * @param {string[]} secrets what may be nowhere, beside the header for servers and the answers
 * @param {string} [name] which gateway, where there are several
 */
export async function judgeRecords(binary, check, secrets, name = 'gateway') {
  check(`${name}: SIGTERM ends it with exit code 0`, (await endGateway(name)) === 0);
  const audit = auditOf(name);
  const verified = await run(binary, ['audit', 'verify', audit], (line) => console.log(`      ${line}`));
  check(`${name}: the chain of its audit log is intact`, verified === 0);
  const wrote = readFileSync(audit, 'utf8') + readFileSync(logOf(name), 'utf8');
  for (const secret of [UPSTREAM_KEY, ...ANSWERS, ...secrets]) {
    check(`${name}: ${JSON.stringify(secret)} is nowhere in its logs`, !wrote.includes(secret));
  }
}
