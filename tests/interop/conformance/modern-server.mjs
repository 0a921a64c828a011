// A server of the modern era only, on the official TypeScript SDK 2.x, that passes everything the conformance suite asks
// of a 2026-07-28 server. It also offers what the scenarios of 2025-11-25 call, for the runs across eras.
//
// Every request stands alone: a server is made for each, and what has to be asked is asked by ending the request with
// `input_required`. Names and values are the suite's.
//
// Usage: node modern-server.mjs [PORT]     (default 0: a free port, printed)
import {
  McpServer,
  ResourceTemplate,
  completable,
  fromJsonSchema,
  inputRequired,
  inputResponse,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { answersOf, ask, serveModern, states } from '../servers/modern.mjs';
import {
  COLOR_FORM,
  CONTEXT_FORM,
  DEFAULTS_FORM,
  ENUMS_FORM,
  NAME_FORM,
  OK_FORM,
  SCHEMA_2020_12,
  USER_FORM,
  registerPlain,
  text,
} from './plain.mjs';

function newServer(changed) {
  const changes = { listChanged: true };
  const mcp = new McpServer(
    { name: 'contraflow-conformance-modern', version: '1.0.0' },
    {
      capabilities: {
        logging: {},
        completions: {},
        tools: changes,
        prompts: changes,
        resources: { subscribe: true, ...changes },
      },
      requestState: { verify: states.verify },
    },
  );
  registerPlain(mcp, {
    completable,
    ResourceTemplate,
    argsOf: (shape) => z.object(shape),
    notify: ({ mcpReq }, { method, params }) =>
      method === 'notifications/message' ? mcpReq.log(params.level, params.data) : mcpReq.notify({ method, params }),
    tokenOf: ({ mcpReq }) => mcpReq._meta?.progressToken,
  });
  registerAsking(mcp);
  registerOfLegacy(mcp);
  registerProbes(mcp, changed);
  return mcp;
}

const elicit = (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema });
const sample = (prompt, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(prompt) }], maxTokens });

/**
 * A tool that asks `questions` (made of its arguments) at once, and answers with `answer` once all are answered; what is
 * missing is asked again. `state` is what it leaves with the client.
 */
function asking(mcp, name, description, inputSchema, questions, answer, state) {
  mcp.registerTool(name, { description, inputSchema }, async (args, context) =>
    (await ask(context, questions(args, context), state)) ?? { content: [text(answer(answersOf(context)))] },
  );
}

const NONE = z.object({});

function registerAsking(mcp) {
  const tool = (name, ...rest) => asking(mcp, `test_input_required_result_${name}`, 'Asks', NONE, ...rest);

  tool(
    'elicitation',
    () => ({ user_name: elicit('What is your name?', NAME_FORM) }),
    ({ user_name: { content } }) => `Hello, ${content?.name}!`,
  );
  tool(
    'sampling',
    () => ({ capital_question: sample('What is the capital of France?', 100) }),
    ({ capital_question: { result } }) => result.content.text,
  );
  tool(
    'list_roots',
    () => ({ client_roots: inputRequired.listRoots() }),
    ({ client_roots: { roots } }) => `Roots: ${roots.map(({ uri }) => uri).join(' ')}`,
  );
  for (const name of ['request_state', 'tampered_state']) {
    const confirmed = ({ confirm: { content } }) => (content?.ok ? 'state-ok' : 'not confirmed');
    tool(name, () => ({ confirm: elicit('Please confirm', OK_FORM) }), confirmed, { of: name });
  }
  tool(
    'multiple_inputs',
    () => ({
      user_name: elicit('What is your name?', NAME_FORM),
      greeting: sample('Generate a greeting', 50),
      client_roots: inputRequired.listRoots(),
    }),
    ({ user_name, greeting, client_roots }) =>
      `${greeting.result.content.text} ${user_name.content?.name} of ${client_roots.roots.length} roots`,
    { of: 'multiple_inputs' },
  );
  tool(
    'capabilities',
    (_, { mcpReq }) => {
      const { sampling, elicitation } = mcpReq.envelope['io.modelcontextprotocol/clientCapabilities'];
      return {
        ...(sampling && { greeting: sample('Generate a greeting', 50) }),
        ...(elicitation && { user_name: elicit('What is your name?', NAME_FORM) }),
      };
    },
    () => 'asked',
  );

  const named = { description: 'Asks twice', inputSchema: NONE };
  mcp.registerTool('test_input_required_result_multi_round', named, async (_, { mcpReq }) => {
    const { name } = mcpReq.requestState() ?? {};
    const step1 = inputResponse(mcpReq.inputResponses, 'step1');
    const step2 = inputResponse(mcpReq.inputResponses, 'step2');
    if (name !== undefined && step2.kind === 'elicit') return { content: [text(`${name} likes ${step2.content?.color}`)] };
    if (step1.kind === 'elicit') {
      return inputRequired({
        inputRequests: { step2: elicit('Step 2: What is your favorite color?', COLOR_FORM) },
        requestState: await states.mint({ round: 2, name: step1.content?.name ?? 'nobody' }),
      });
    }
    return inputRequired({
      inputRequests: { step1: elicit('Step 1: What is your name?', NAME_FORM) },
      requestState: await states.mint({ round: 1 }),
    });
  });

  mcp.registerPrompt('test_input_required_result_prompt', { description: 'Asks for the context' }, async (context) => {
    const asked = await ask(context, { user_context: elicit('What context should the prompt use?', CONTEXT_FORM) });
    if (asked) return asked;
    const { content } = answersOf(context).user_context;
    return { messages: [{ role: 'user', content: text(`In the context ${content?.context}`) }] };
  });
}

/** What the scenarios of 2025-11-25 call, asked as this era asks. */
function registerOfLegacy(mcp) {
  asking(
    mcp,
    'test_sampling',
    'Asks the model',
    z.object({ prompt: z.string() }),
    ({ prompt }) => ({ answer: sample(prompt, 100) }),
    ({ answer }) => `LLM response: ${answer.result.content.text}`,
  );
  const told = (of) => ({ answer: { action, content } }) => `${of}: action=${action}, content=${JSON.stringify(content ?? {})}`;
  asking(
    mcp,
    'test_elicitation',
    'Asks the user',
    z.object({ message: z.string() }),
    ({ message }) => ({ answer: elicit(message, USER_FORM) }),
    told('User response'),
  );
  for (const [name, form] of [['sep1034_defaults', DEFAULTS_FORM], ['sep1330_enums', ENUMS_FORM]]) {
    asking(
      mcp,
      `test_elicitation_${name}`,
      'Asks the user with every kind of field',
      NONE,
      () => ({ answer: elicit('Please fill in the form', form) }),
      told('Elicitation completed'),
    );
  }
  const schema = fromJsonSchema(SCHEMA_2020_12);
  const named = { description: 'Tool with JSON Schema 2020-12 features', inputSchema: schema };
  mcp.registerTool('json_schema_2020_12_tool', named, () => ({ content: [text('ok')] }));
}

/** What the suite finds out about an endpoint with. */
function registerProbes(mcp, changed) {
  const tool = (name, description, run) =>
    mcp.registerTool(name, { description, inputSchema: NONE }, async (_, context) => ({ content: [text(await run(context))] }));

  // The SDK refuses to ask what the client didn't declare, with the error that this era has for it.
  asking(
    mcp,
    'test_missing_capability',
    'Needs a model',
    NONE,
    () => ({ answer: sample('Anything?', 10) }),
    ({ answer }) => answer.result.content.text,
  );
  asking(
    mcp,
    'test_streaming_elicitation',
    'Asks for a name',
    NONE,
    () => ({ user_name: elicit('What is your name?', NAME_FORM) }),
    ({ user_name: { content } }) => String(content?.name),
  );
  tool('test_logging_tool', 'Logs, if the request wants it', async ({ mcpReq }) => {
    await mcpReq.log('info', 'at work');
    return 'logged';
  });
  tool('test_trigger_tool_change', 'Says that the tools changed', () => {
    changed().toolsChanged();
    return 'changed';
  });
  tool('test_trigger_prompt_change', 'Says that the prompts changed', () => {
    changed().promptsChanged();
    return 'changed';
  });
  const inputSchema = fromJsonSchema({
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, query: { type: 'string' } },
    required: ['region'],
  });
  mcp.registerTool('test_custom_header', { description: 'Mirrors an argument', inputSchema }, ({ region }) => ({
    content: [text(`in ${region}`)],
  }));
}

serveModern({ port: Number(process.argv[2] ?? 0), newServer });
