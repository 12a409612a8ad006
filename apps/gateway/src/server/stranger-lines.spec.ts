import { StrangerLines } from './stranger-lines';

describe(StrangerLines.name, () => {
  const lines: unknown[] = [];
  const logger = { log: (line: object) => lines.push(['info', line]), warn: (line: object) => lines.push(['warn', line]) };

  beforeEach(() => {
    jest.useFakeTimers();
    lines.length = 0;
  });
  afterEach(() => jest.useRealTimers());

  it('are ten a second for each status, and one that counts the rest', () => {
    const strangers = new StrangerLines(logger as never);
    const write = (status: number, count: number) => {
      for (let request = 0; request < count; request++) strangers.write(status, { status, request });
    };
    write(401, 1000);
    write(404, 10);
    write(503, 1);
    expect(lines).toHaveLength(21);
    expect(lines.at(0)).toEqual(['info', { status: 401, request: 0 }]);
    expect(lines.at(-1)).toEqual(['warn', { status: 503, request: 0 }]);
    jest.advanceTimersByTime(1000);
    expect(lines.slice(21)).toEqual([['warn', { msg: 'more requests without known credentials', status: 401, requests: 990 }]]);
    write(401, 1);
    expect(lines).toHaveLength(23);
    jest.advanceTimersByTime(1000);
    expect(lines).toHaveLength(23);
  });
});
