// The official SDKs: the programs that are clients and servers, by name. `2` is the modern era.
import { PYTHON, PYTHON_MODERN } from './processes.mjs';

const NODE = process.execPath;

/** `command` runs the scenarios; `play` what a judge tells it to. */
export const SDK_CLIENTS = {
  ts2: { era: 'modern', command: [NODE, 'clients/modern.mjs'], play: [NODE, 'clients/policy.mjs'] },
  py2: { era: 'modern', command: [PYTHON_MODERN, 'clients/modern.py'], play: [PYTHON_MODERN, 'clients/policy.py'] },
  ts: { era: 'legacy', command: [NODE, 'clients/client.mjs'], play: [NODE, 'clients/policy.mjs'] },
  py: { era: 'legacy', command: [PYTHON, 'clients/client.py'], play: [PYTHON, 'clients/policy.py'] },
};

export const SDK_SERVERS = {
  ts: { era: 'legacy', command: [NODE, 'servers/server.mjs'] },
  py: { era: 'legacy', command: [PYTHON, 'servers/server.py'] },
  ts2: { era: 'modern', command: [NODE, 'servers/modern-server.mjs'] },
  py2: { era: 'modern', command: [PYTHON_MODERN, 'servers/modern_server.py'] },
};
