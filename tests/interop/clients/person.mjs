// A person with the official TypeScript SDK 1.x, of the legacy era.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
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
  /** The progress that came, in the order of its coming; of all calls. */
  progress = [];

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

  /** Connects to `url`, by HTTP+SSE where that ends in `/sse`; `version` offers that revision instead of the SDK's newest, which takes the SDK's lower level. */
  async connect({ url, version, reconnectionOptions, headers = {} }) {
    const opened = new Promise((resolve) => (this.getStreamOpen = resolve));
    const oldest = url.endsWith('/sse');
    const Transport = oldest ? SSEClientTransport : StreamableHTTPClientTransport;
    this.transport = new Transport(new URL(url), {
      requestInit: { headers },
      reconnectionOptions,
      fetch: async (target, init) => {
        const response = await fetch(target, init);
        if (init?.method === 'GET' && response.ok) this.getStreamOpen();
        return response;
      },
    });
    // The one stream is open from the start; what takes its time is the gateway's at the server.
    this.listening = () => bounded(oldest ? this.client.ping() : opened, 'the GET stream opens');
    const negotiated = this.transport.setProtocolVersion.bind(this.transport);
    this.transport.setProtocolVersion = (chosen) => negotiated((this.version = chosen));
    if (version === undefined) {
      await this.client.connect(this.transport);
      this.watch();
      return this;
    }
    await Protocol.prototype.connect.call(this.client, this.transport);
    this.watch();
    const clientInfo = { name: 'interop-ts-client', version: '1.0.0' };
    const params = { protocolVersion: version, capabilities: CAPABILITIES, clientInfo };
    const answer = await this.client.request({ method: 'initialize', params }, InitializeResultSchema);
    this.transport.setProtocolVersion(answer.protocolVersion);
    await this.client.notification({ method: 'notifications/initialized' });
    return this;
  }

  /** Looks at what comes before the SDK does. */
  watch() {
    const take = this.transport.onmessage;
    this.transport.onmessage = (message, extra) => {
      if (message.method === 'notifications/progress') this.progress.push(message.params);
      take(message, extra);
    };
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

  /** Names the session to the gateway; with HTTP+SSE the address to post to does. */
  get sessionId() {
    return this.transport.sessionId ?? this.address?.searchParams.get('sessionId');
  }

  /** Where an HTTP+SSE session takes messages. */
  get address() {
    return this.transport._endpoint;
  }

  /** Ends the session: with HTTP+SSE by closing its stream, which is all that there is. */
  async leave() {
    await this.transport.terminateSession?.();
    await this.client.close();
  }
}
