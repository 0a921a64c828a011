// A person with the official TypeScript SDK 2.x, of the modern era.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { PATIENCE_MS, ROOTS } from './scenarios.mjs';

/** The revision that it speaks. */
export const VERSION = '2026-07-28';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** An SDK client that keeps what it was asked and told, and answers with `answer(params)`. */
export class Person {
  asked = [];
  sampled = [];
  told = [];

  constructor(answer, { capabilities = CAPABILITIES, mode = { pin: VERSION }, name = 'ada' } = {}) {
    this.name = name;
    this.client = new Client({ name: 'interop-ts2-client', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
    if (capabilities.elicitation) {
      this.client.setRequestHandler('elicitation/create', ({ params }) => {
        this.asked.push(params);
        return answer(params);
      });
    }
    if (capabilities.sampling) {
      this.client.setRequestHandler('sampling/createMessage', ({ params }) => {
        this.sampled.push(params);
        const text = `in short: ${params.messages[0].content.text}`;
        return { model: 'toy-model', role: 'assistant', stopReason: 'endTurn', content: { type: 'text', text } };
      });
    }
    if (capabilities.roots) this.client.setRequestHandler('roots/list', () => ({ roots: ROOTS }));
    for (const notice of ['message', 'resources/updated', 'tools/list_changed']) {
      const take = ({ method, params }) => void this.told.push({ method, ...params });
      this.client.setNotificationHandler(`notifications/${notice}`, take);
    }
  }

  /** Connects to `url`, with the key of this person, where there is one. */
  async connect({ url, headers = {} }) {
    const key = process.env[`KEY_${this.name.toUpperCase()}`];
    const requestInit = { headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers } };
    this.transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
    await this.client.connect(this.transport);
    return this;
  }

  result(name, args = {}, { logLevel, ...options } = {}) {
    const _meta = logLevel && { _meta: { [LOG_LEVEL]: logLevel } };
    return this.client.callTool({ name, arguments: args, ..._meta }, { timeout: PATIENCE_MS, ...options });
  }

  /** Calls a tool and gives the text of its answer. */
  async call(name, args, options) {
    const result = await this.result(name, args, options);
    assert.notEqual(result.isError, true, `${name} answered an error: ${JSON.stringify(result.content)}`);
    return result.content[0].text;
  }

  leave() {
    return this.client.close();
  }
}
