// Plays the cases of the policy for questions with a TypeScript SDK, and says what became of each.
//
// Usage: node policy.mjs ERA CASES     ERA of the client: `legacy` or `modern`; CASES: the file (judge/policy.mjs)
// Prints a line of JSON for each case: what the tool said, or how it failed, and what the person was asked.
import { readFileSync } from 'node:fs';
import { bounded } from './scenarios.mjs';

const [era, file] = process.argv.slice(2);
const { Person } = await import(era === 'modern' ? './modern-person.mjs' : './person.mjs');

/** Plays one case with a client of its own. */
async function play({ url, headers, can, tool, args, says }) {
  let asked = 0;
  const answer = () => {
    const said = says[asked++];
    return said === null ? new Promise(() => {}) : (said ?? { action: 'cancel' });
  };
  const capabilities = can ? undefined : {};
  const person = new Person(answer, era === 'modern' ? { capabilities } : capabilities);
  const outcome = { said: null, failed: null };
  try {
    await person.connect({ url, headers });
    const { isError, content } = await person.result(tool, args);
    outcome[isError ? 'failed' : 'said'] = content[0].text;
  } catch (error) {
    outcome.failed = String(error?.message ?? error);
  } finally {
    await person.leave().catch(() => {});
  }
  return { ...outcome, asked: person.asked.map(({ message }) => message), others: person.sampled.length };
}

for (const one of JSON.parse(readFileSync(file, 'utf8'))) {
  const outcome = await bounded(play(one), 'the case ends').catch(({ message }) => ({ failed: message }));
  console.log(JSON.stringify({ name: one.name, ...outcome }));
}
process.exit(0);
