// What must hold of everything that a gateway wrote while the clients were there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RUN, UPSTREAM_KEY, endGateway, run } from './processes.mjs';

/** What the scenarios of every client answer and ask; it belongs into no record. */
const ANSWERS = ['Zoë', 'pay-7?a=1'];

/**
 * Ends the gateway as an operator would, verifies its audit log, and looks for secrets in its records.
 *
 * @param {(name: string, good: boolean) => void} check counts and prints a check
 * @param {string[]} secrets what may be nowhere, beside the header for servers and the answers
 */
export async function judgeRecords(binary, check, secrets) {
  check('gateway: SIGTERM ends it with exit code 0', (await endGateway()) === 0);
  const audit = join(RUN, 'audit.jsonl');
  const verified = await run(binary, ['audit', 'verify', audit], (line) => console.log(`      ${line}`));
  check('gateway: the chain of its audit log is intact', verified === 0);
  const wrote = readFileSync(audit, 'utf8') + readFileSync(join(RUN, 'gateway.log'), 'utf8');
  for (const secret of [UPSTREAM_KEY, ...ANSWERS, ...secrets]) {
    check(`gateway: ${JSON.stringify(secret)} is nowhere in its logs`, !wrote.includes(secret));
  }
}
