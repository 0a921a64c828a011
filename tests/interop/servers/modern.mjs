// Official TypeScript MCP servers of the modern era, over Streamable HTTP on loopback: one for each request.
//
// A client of the legacy era is refused: that these servers know nothing of sessions is what the runs across eras need.
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, createRequestStateCodec, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';

/** What servers leave with their clients, sealed. */
export const states = createRequestStateCodec({ key: randomBytes(32) });

/**
 * The result that asks what of `questions` (key → embedded request) is not answered yet, or `undefined` when all is.
 * `state` is left with the client.
 */
export async function ask({ mcpReq }, questions, state) {
  const missing = Object.entries(questions).filter(([key]) => inputResponse(mcpReq.inputResponses, key).kind === 'missing');
  if (missing.length === 0) return undefined;
  const requestState = state === undefined ? {} : { requestState: await states.mint(state) };
  return inputRequired({ inputRequests: Object.fromEntries(missing), ...requestState });
}

/** The answers of this round by key. */
export const answersOf = ({ mcpReq }) =>
  new Proxy({}, { get: (_, key) => inputResponse(mcpReq.inputResponses, key) });

/**
 * Serves MCP on standard input and output.
 *
 * @param {(changed: () => object) => object} newServer makes the server
 */
export function serveProgram(newServer) {
  const changed = () => ({
    resourceUpdated: (uri) => server.server.sendResourceUpdated({ uri }),
    toolsChanged: () => server.sendToolListChanged(),
  });
  let server;
  serveStdio(() => (server = newServer(changed)), { legacy: 'reject' });
}

/**
 * Serves MCP at `/mcp` and prints `listening <url>` as soon as it accepts connections.
 *
 * @param {object} options
 * @param {number} options.port the port on 127.0.0.1; 0 picks a free one
 * @param {(changed: () => object) => object} options.newServer makes the server of one request; `changed()` tells those
 *   who listen what changed
 */
export function serveModern({ port, newServer }) {
  const handler = createMcpHandler(() => newServer(() => handler.notify), { legacy: 'reject' });
  const serve = toNodeHandler(handler);
  const hostIsOurs = localhostHostValidation();
  const originIsOurs = localhostOriginValidation();
  createServer((request, response) => {
    if (!hostIsOurs(request, response) || !originIsOurs(request, response)) return;
    void serve(request, response);
  }).listen(port, '127.0.0.1', function () {
    console.log(`listening http://127.0.0.1:${this.address().port}/mcp`);
  });
}
