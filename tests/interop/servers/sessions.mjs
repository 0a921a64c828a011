// One official TypeScript MCP server per session, over Streamable HTTP on loopback.
//
// The SDK leaves the table of sessions to the application; this is that table and nothing else: `initialize`
// without a session id makes a transport and a server for it, an id is looked up, an unknown id is 404 (what
// makes a client start anew), DELETE ends the session. Host headers are checked by the SDK's own middleware.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { localhostHostValidation } from '@modelcontextprotocol/sdk/server/middleware/hostHeaderValidation.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

/**
 * Serves MCP at `/mcp` and prints `listening <url>` as soon as it accepts connections.
 *
 * @param {object} options
 * @param {number} options.port the port on 127.0.0.1; 0 picks a free one
 * @param {() => {connect: Function}} options.newServer makes the server of one session
 * @param {() => object} [options.newEventStore] makes the event store of one session, for resumable streams
 * @param {number} [options.retryMs] the `retry` of the first event on a stream, with an event store
 */
export function serveSessions({ port, newServer, newEventStore, retryMs }) {
  const sessions = new Map();
  const app = express().use(localhostHostValidation());

  app.all('/mcp', async (request, response) => {
    const id = request.get('mcp-session-id');
    if (id !== undefined) {
      const transport = sessions.get(id);
      if (transport === undefined) return refuse(response, 404, -32001, 'Session not found');
      return transport.handleRequest(request, response);
    }
    // Whether this is an `initialize` is for the SDK to say; if it is none, nobody will find the transport again.
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (sessionId) => void sessions.set(sessionId, transport),
      onsessionclosed: (sessionId) => void sessions.delete(sessionId),
      ...(newEventStore && { eventStore: newEventStore(), retryInterval: retryMs }),
    });
    await newServer().connect(transport);
    await transport.handleRequest(request, response);
    if (transport.sessionId === undefined) await transport.close();
  });

  const listener = app.listen(port, '127.0.0.1', (error) => {
    if (error) throw error;
    console.log(`listening http://127.0.0.1:${listener.address().port}/mcp`);
  });
}

/**
 * Serves MCP over HTTP+SSE of 2024-11-05 at `/sse`, and prints `listening <url>`: the stream is the session.
 *
 * @param {object} options
 * @param {number} options.port the port on 127.0.0.1; 0 picks a free one
 * @param {() => {connect: Function}} options.newServer makes the server of one session
 */
export function serveSse({ port, newServer }) {
  const sessions = new Map();
  const app = express().use(localhostHostValidation());

  app.get('/sse', async (_, response) => {
    const transport = new SSEServerTransport('/messages', response);
    sessions.set(transport.sessionId, transport);
    response.once('close', () => sessions.delete(transport.sessionId));
    await newServer().connect(transport);
  });
  app.post('/messages', (request, response) => {
    const transport = sessions.get(request.query.sessionId);
    if (transport === undefined) return refuse(response, 404, -32001, 'Session not found');
    return transport.handlePostMessage(request, response);
  });

  const listener = app.listen(port, '127.0.0.1', (error) => {
    if (error) throw error;
    console.log(`listening http://127.0.0.1:${listener.address().port}/sse`);
  });
}

function refuse(response, status, code, message) {
  response.status(status).json({ jsonrpc: '2.0', error: { code, message }, id: null });
}
