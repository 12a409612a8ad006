import { readOptions } from './send-options';

const OPERATION = { kind: 'command', pattern: 'users.add.v1' } as const;

const cycle: Record<string, unknown> = {};
cycle.cycle = cycle;

describe(readOptions.name, () => {
  it.each<[string, unknown]>([
    ['a cycle', cycle],
    ['a BigInt', { n: 1n }],
    ['no JSON at all', { toJSON: () => undefined }],
    ['no object', 'text'],
  ])('refuses a body that is or has %s', (_, body) => {
    const refused = { name: 'ApiError', status: 'INVALID_ARGUMENT' };
    expect(() => readOptions(OPERATION, body, { apiKey: 'key' }, {})).toThrow(expect.objectContaining(refused) as Error);
  });
});
