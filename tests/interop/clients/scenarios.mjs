// What every client here needs, whichever SDK it has: answers of a person, waiting, and the run of scenarios.

/** How long a client waits for anything, in ms. */
export const PATIENCE_MS = 10_000;
/** The roots of every person. */
export const ROOTS = [
  { uri: 'file:///home/ada', name: 'Ada' },
  { uri: 'file:///srv/caf%C3%A9', name: 'Café' },
];

export const accept = (content) => () => ({ action: 'accept', content });
/** Answers a question with its own message and the person's name: an answer that went astray shows. */
export const signed = (name) => ({ message }) => ({ action: 'accept', content: { answer: `${name}:${message}` } });

/** Gives what `promise` gives, or an error that says `what` did not come in time. */
export function bounded(promise, what, patience = PATIENCE_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${patience} ms in vain: ${what}`)), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits until a condition holds. */
export async function until(condition, what) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`waited ${PATIENCE_MS} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * Runs scenarios one after the other (those whose name has ONLY in it, and is not in the list SKIP), prints a line for each and their count, and ends
 * the program: with exit code 1 when one failed.
 *
 * @param {string} label what to print before each
 * @param {Record<string, () => Promise<unknown>>} scenarios
 * @param {number} patience how long one may take, in ms
 */
export async function runScenarios(label, scenarios, patience) {
  const only = process.env.ONLY;
  const skip = JSON.parse(process.env.SKIP ?? '[]');
  let passed = 0;
  let failed = 0;
  for (const [name, run] of Object.entries(scenarios)) {
    if ((only && !name.includes(only)) || skip.includes(name)) continue;
    try {
      await bounded(run(), 'the scenario ends', patience);
      passed++;
      console.log(`ok    ${label}: ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL  ${label}: ${name}\n      ${String(error?.message ?? error).replaceAll('\n', '\n      ')}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
