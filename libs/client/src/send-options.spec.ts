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

  // A consumer would refuse it: a published command where nobody sees it.
  it.each([
    ['users.add.v1', 'command', 1024 * 1024],
    ['users.get.v1', 'query', 512 * 1024],
  ] as const)('refuses a longer body of %s than a consumer takes', (pattern, kind, most) => {
    const read = (bytes: number) =>
      readOptions({ kind, pattern }, { text: 'x'.repeat(bytes - '{"text":""}'.length) }, { apiKey: 'key' }, {});
    expect(read(most).content).toHaveLength(most);
    expect(() => read(most + 1)).toThrow(`The body of ${pattern} must be at most ${most} bytes as JSON.`);
  });

  it('refuses a body of more values than a consumer takes', () => {
    const read = (values: number) => readOptions(OPERATION, { list: Array<number>(values - 2).fill(1) }, { apiKey: 'key' }, {});
    expect(read(120_000).content.length).toBeGreaterThan(0);
    expect(() => read(120_001)).toThrow('The body of users.add.v1 must have at most 120000 values.');
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
