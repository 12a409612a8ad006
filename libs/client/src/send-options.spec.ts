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
    ['null', null],
    ['a list', []],
  ])('refuses a body that is or has %s', (_, body) => {
    const refused = { name: 'ApiError', status: 'INVALID_ARGUMENT' };
    expect(() => readOptions(OPERATION, body, { apiKey: 'key' }, {})).toThrow(expect.objectContaining(refused) as Error);
  });

  // JavaScript has no types. A published command with them would be confirmed, and refused where nobody sees it.
  it.each<[string, unknown]>([
    ['idempotencyKey', null],
    ['idempotencyKey', 42],
    ['requestId', 42],
    ['messageId', 42],
    ['timeoutMs', '5000'],
    ['timeoutMs', NaN],
  ])('refuses the option %s of %p', (name, value) => {
    const refused = { status: 'INVALID_ARGUMENT', message: expect.stringContaining(name) as string };
    const options = { apiKey: 'key', [name]: value };
    expect(() => readOptions(OPERATION, {}, options, {})).toThrow(expect.objectContaining(refused) as Error);
  });
});
