// A person with the official TypeScript SDK 1.x, of the legacy era.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Protocol } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CreateMessageRequestSchema,
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  InitializeResultSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { PATIENCE_MS, ROOTS, bounded } from './scenarios.mjs';

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };

/** An SDK client that keeps what it was asked and told, and answers with `answer(params)`. */
export class Person {
  asked = [];
  sampled = [];
  told = [];

  constructor(answer, capabilities = CAPABILITIES) {
    this.client = new Client({ name: 'interop-ts-client', version: '1.0.0' }, { capabilities });
    if (capabilities.elicitation) {
      this.client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        this.asked.push(params);
        return answer(params);
      });
    }
    if (capabilities.sampling) {
      this.client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
        this.sampled.push(params);
        const text = `in short: ${params.messages[0].content.text}`;
        return { model: 'toy-model', role: 'assistant', stopReason: 'endTurn', content: { type: 'text', text } };
      });
    }
    if (capabilities.roots) this.client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: ROOTS }));
    for (const notice of [
      LoggingMessageNotificationSchema,
      ElicitationCompleteNotificationSchema,
      ResourceUpdatedNotificationSchema,
      ToolListChangedNotificationSchema,
    ]) {
      this.client.setNotificationHandler(notice, ({ method, params }) => void this.told.push({ method, ...params }));
    }
  }

  /** Connects to `url`; `version` offers that revision instead of the SDK's newest, which takes the SDK's lower level. */
  async connect({ url, version, headers = {} }) {
    const opened = new Promise((resolve) => (this.getStreamOpen = resolve));
    this.transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers },
      fetch: async (target, init) => {
        const response = await fetch(target, init);
        if (init?.method === 'GET' && response.ok) this.getStreamOpen();
        return response;
      },
    });
    this.listening = () => bounded(opened, 'the GET stream opens');
    if (version === undefined) {
      await this.client.connect(this.transport);
      this.version = this.transport.protocolVersion;
      return this;
    }
    await Protocol.prototype.connect.call(this.client, this.transport);
    const clientInfo = { name: 'interop-ts-client', version: '1.0.0' };
    const params = { protocolVersion: version, capabilities: CAPABILITIES, clientInfo };
    const answer = await this.client.request({ method: 'initialize', params }, InitializeResultSchema);
    this.version = answer.protocolVersion;
    this.transport.setProtocolVersion(answer.protocolVersion);
    await this.client.notification({ method: 'notifications/initialized' });
    return this;
  }

  result(name, args = {}, options = {}) {
    return this.client.callTool({ name, arguments: args }, undefined, { timeout: PATIENCE_MS, ...options });
  }

  /** Calls a tool and gives the text of its answer. */
  async call(name, args, options) {
    const result = await this.result(name, args, options);
    assert.notEqual(result.isError, true, `${name} answered an error: ${JSON.stringify(result.content)}`);
    return result.content[0].text;
  }

  async leave() {
    await this.transport.terminateSession();
    await this.client.close();
  }
}
