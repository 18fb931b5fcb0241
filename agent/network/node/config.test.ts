import { describe, expect, test } from 'vitest';
import { loadNodeAgentEnvironment } from './config.ts';

describe('the environment of the node process', () => {
  test('needs only the name of the node', () => {
    expect(loadNodeAgentEnvironment({ NODE_NAME: 'n1.example' })).toMatchObject({
      node: 'n1.example',
      systemNamespace: 'liqo',
      daemonSet: 'isthmus-fabric',
      logLevel: 'info',
    });
  });

  test.each([
    { env: {}, names: 'NODE_NAME' },
    { env: { NODE_NAME: 'N_1' }, names: 'NODE_NAME is "N_1"' },
    { env: { NODE_NAME: 'n', ISTHMUS_FULL_MASQUERADE: 'yes' }, names: 'accepted: auto, true, false' },
    { env: { NODE_NAME: 'n', ISTHMUS_RULE_PRIORITY: '40000' }, names: 'accepted: an integer from 1 to 32765' },
    { env: { NODE_NAME: 'n', ISTHMUS_LOG_LEVEL: 'loud' }, names: 'ISTHMUS_LOG_LEVEL is "loud"' },
  ])('is refused with the name of what is wrong: $names', ({ env, names }) => {
    expect(() => loadNodeAgentEnvironment(env)).toThrow(names);
  });
});
