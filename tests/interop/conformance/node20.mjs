// Lets the conformance suite start on Node 20.
//
// Its bundle imports `globSync` from `fs`, a name that Node has from version 22 on and that only the suite's
// `tier-check` command calls. A missing export of a built-in module is a link error, and the export list of a
// built-in is fixed, so the import is redirected to a module that re-exports `fs` and adds the name.
// On newer Node versions this file does nothing.
import fs from 'node:fs';
import { register } from 'node:module';

if (fs.globSync === undefined) {
  const withGlobSync =
    'export * from "node:fs"; export { default } from "node:fs"; ' +
    'export const globSync = () => { throw new Error("globSync needs Node 22"); };';
  const source = `data:text/javascript,${encodeURIComponent(withGlobSync)}`;
  const hooks = `
    export async function resolve(specifier, context, next) {
      if (specifier === 'fs' && context.parentURL?.includes('@modelcontextprotocol/conformance')) {
        return { url: ${JSON.stringify(source)}, shortCircuit: true };
      }
      return next(specifier, context);
    }`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`);
}
