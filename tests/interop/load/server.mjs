// A small MCP server that asks many questions at once, for the load run only; written on the bare HTTP module, so that
// it costs less than what it measures.
//
// `tools/call survey {tag, n, rounds}` asks n questions, and n more when they are answered, for as many rounds (default
// 1); ids are the same numbers in every session, so an answer that strays into another session is taken for one. Every
// fifth question goes to the GET stream. An answer counts as right when it repeats the question's token and is signed
// with the tag of the session that was asked. `GET /sessions` tells how many there are.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const sessions = new Map();

const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (data) => (body += data)).on('end', () => {
    const session = sessions.get(request.headers['mcp-session-id']);
    if (request.url === '/sessions') return response.end(String(sessions.size));
    if (request.method === 'GET' && session) return session.listen(response);
    if (request.method === 'DELETE' && session) return end(response, sessions.delete(session.id) && 200);
    if (request.method !== 'POST') return end(response, 404);
    const message = JSON.parse(body);
    if (message.method === 'initialize') return initialize(message, response);
    if (!session) return end(response, 404);
    if (message.id === undefined || message.method === undefined) {
      if (message.method === undefined) session.answered(message);
      return end(response, 202);
    }
    return session.survey(message, response);
  });
});
// Hundreds of sessions are opened in one moment.
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  console.log(`listening http://127.0.0.1:${server.address().port}/mcp`);
});

function end(response, status) {
  response.writeHead(status).end();
}

function initialize({ id, params }, response) {
  const session = new Session(randomUUID());
  sessions.set(session.id, session);
  response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session.id });
  const serverInfo = { name: 'survey', version: '1.0.0' };
  const result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

class Session {
  #waiting = new Map();
  #tally = { right: 0, wrong: 0, stray: 0 };
  #beforeGet = [];

  constructor(id) {
    this.id = id;
  }

  listen(response) {
    openStream(response);
    this.get = response;
    this.#beforeGet.splice(0).forEach((event) => response.write(event));
  }

  survey({ id, params }, response) {
    const { tag, n, rounds = 1 } = params.arguments;
    openStream(response);
    this.tag = tag;
    this.#tally = { right: 0, wrong: 0, stray: 0 };
    let left = rounds;
    this.next = () => {
      left -= 1;
      if (left >= 0) return this.#ask(n, (rounds - left) * n, response);
      const text = JSON.stringify(this.#tally);
      response.end(event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } }));
    };
    this.next();
  }

  /** Asks n questions with the ids that end at `last`. */
  #ask(n, last, response) {
    for (let i = last - n + 1; i <= last; i++) {
      const token = randomUUID();
      this.#waiting.set(i, token);
      const requestedSchema = { type: 'object', properties: { word: { type: 'string' }, by: { type: 'string' } } };
      const question = event({
        jsonrpc: '2.0',
        id: i,
        method: 'elicitation/create',
        params: { message: `${this.tag} ${token}`, requestedSchema },
      });
      if (i % 5 !== 0) response.write(question);
      else if (this.get) this.get.write(question);
      else this.#beforeGet.push(question);
    }
  }

  answered({ id, result }) {
    const token = this.#waiting.get(id);
    if (token === undefined) {
      this.#tally.stray++;
      return;
    }
    this.#waiting.delete(id);
    const right = result?.action === 'accept' && result.content.word === token && result.content.by === this.tag;
    this.#tally[right ? 'right' : 'wrong']++;
    if (this.#waiting.size === 0) this.next();
  }
}

function openStream(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
}

function event(message) {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}
