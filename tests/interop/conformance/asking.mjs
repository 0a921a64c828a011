// What the scenarios of 2026-07-28 call, offered by a server of the legacy era: where a modern server would end the
// request with `input_required`, this one asks in its midst and waits for the answer.
//
// Names and values are the suite's. A legacy question has no key and leaves no state with the client; the scenarios
// that look at a key which the server chose can't be expressed here (README.md names them).

import { COLOR_FORM, CONTEXT_FORM, NAME_FORM, OK_FORM, text } from './plain.mjs';

const user = (value) => ({ role: 'user', content: text(value) });

/** The sessions that are open: a list of tools or prompts changes for all of them. */
const open = new Set();

/** Registers the tools and the prompt at the server of one session. */
export function registerAsking(mcp) {
  const { server } = mcp;
  open.add(mcp);
  server.onclose = () => open.delete(mcp);

  const tool = (name, description, run) =>
    mcp.registerTool(name, { description, inputSchema: {} }, async (_, extra) => ({ content: [text(await run(extra))] }));
  const related = ({ requestId }) => ({ relatedRequestId: requestId });
  const elicit = (extra, message, requestedSchema) => server.elicitInput({ message, requestedSchema }, related(extra));
  const sample = (extra, prompt, maxTokens) =>
    server.createMessage({ messages: [user(prompt)], maxTokens }, related(extra));
  const roots = (extra) => server.listRoots(undefined, related(extra));
  const nameOf = ({ content }) => content?.name ?? 'nobody';

  tool('test_input_required_result_elicitation', 'Asks for a name', async (extra) =>
    `Hello, ${nameOf(await elicit(extra, 'What is your name?', NAME_FORM))}!`,
  );
  tool('test_input_required_result_sampling', 'Asks the model', async (extra) =>
    (await sample(extra, 'What is the capital of France?', 100)).content.text,
  );
  tool('test_input_required_result_list_roots', 'Asks for the roots', async (extra) =>
    `Roots: ${(await roots(extra)).roots.map(({ uri }) => uri).join(' ')}`,
  );
  for (const name of ['request_state', 'tampered_state']) {
    tool(`test_input_required_result_${name}`, 'Asks for a confirmation', async (extra) => {
      const { content } = await elicit(extra, 'Please confirm', OK_FORM);
      return content?.ok ? 'state-ok' : 'not confirmed';
    });
  }
  tool('test_input_required_result_multiple_inputs', 'Asks three things at once', async (extra) => {
    const [name, greeting, list] = await Promise.all([
      elicit(extra, 'What is your name?', NAME_FORM),
      sample(extra, 'Generate a greeting', 50),
      roots(extra),
    ]);
    return `${greeting.content.text} ${nameOf(name)} of ${list.roots.length} roots`;
  });
  tool('test_input_required_result_multi_round', 'Asks twice', async (extra) => {
    const name = nameOf(await elicit(extra, 'Step 1: What is your name?', NAME_FORM));
    const { content } = await elicit(extra, 'Step 2: What is your favorite color?', COLOR_FORM);
    return `${name} likes ${content?.color}`;
  });
  tool('test_input_required_result_capabilities', 'Asks what the client can be asked', async (extra) => {
    const { sampling, elicitation } = server.getClientCapabilities();
    const asked = await Promise.all([
      ...(sampling ? [sample(extra, 'Generate a greeting', 50)] : []),
      ...(elicitation ? [elicit(extra, 'What is your name?', NAME_FORM)] : []),
    ]);
    return `asked ${asked.length}`;
  });

  // Asks whether or not the client declared it, as servers of this era may: only then does a gateway learn the need.
  tool('test_missing_capability', 'Needs a model', async (extra) => (await sample(extra, 'Anything?', 10)).content.text);
  tool('test_streaming_elicitation', 'Asks on the stream of the call', async (extra) =>
    nameOf(await elicit(extra, 'What is your name?', NAME_FORM)),
  );
  tool('test_logging_tool', 'Logs, whoever listens', async (extra) => {
    await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'at work' } });
    return 'logged';
  });
  tool('test_trigger_tool_change', 'Says in all sessions that the tools changed', async () => {
    for (const each of open) each.sendToolListChanged();
    return 'changed';
  });
  tool('test_trigger_prompt_change', 'Says in all sessions that the prompts changed', async () => {
    for (const each of open) each.sendPromptListChanged();
    return 'changed';
  });

  mcp.registerPrompt('test_input_required_result_prompt', { description: 'Asks for the context' }, async (extra) => {
    const { content } = await elicit(extra, 'What context should the prompt use?', CONTEXT_FORM);
    return { messages: [user(`In the context ${content?.context}`)] };
  });
}
